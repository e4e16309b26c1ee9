// Requests that are made again within a call: to a busy server, and over a new connection.
#include <blindfuse/errors.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/session.h"
#include "tests/client/fake_server.h"
#include "tests/client/look_ups.h"
#include "tests/client/scratch_folder.h"

namespace blindfuse {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const HttpReply kBusy = FakeServer::error(503, "queue full", 0);

// Gives these answers first to each request for something else than a value.
class BusyTransport final : public FakeTransport {
 public:
  BusyTransport(FakeServer& server, std::vector<HttpReply> first)
      : FakeTransport(server), first_(std::move(first)) {}
  HttpReply get(const std::string& path, uint64_t first_byte, BodyReceiver& receiver) override {
    const std::vector<HttpReply>& answers = first_;
    if (size_t& given = given_[path]; given < answers.size()) return answers[given++];
    return FakeTransport::get(path, first_byte, receiver);
  }

 private:
  const std::vector<HttpReply> first_;
  std::map<std::string, size_t> given_;
};

// Closes a kept connection before every second query, once it is told to.
class ClosingTransport final : public FakeTransport {
 public:
  ClosingTransport(FakeServer& server, const bool& is_on) : FakeTransport(server), is_on_(is_on) {}
  HttpReply post(const std::string& path, std::span<const uint8_t> body,
                 BodyReceiver& receiver) override {
    if (is_on_ && (closes_ = !closes_)) throw KeptConnectionClosed("it closed");
    return FakeTransport::post(path, body, receiver);
  }

 private:
  const bool& is_on_;
  bool closes_ = false;
};

class RepeatedRequestsTest : public testing::Test {
 protected:
  ScratchFolder scratch_;
  FakeServer server_{ServedDatabase::from_vectors("database_keyword.json")};

  std::vector<std::string> keys() const {
    const nlohmann::json vectors = read_vectors("database_keyword.json");
    std::vector<std::string> keys;
    for (size_t i = 0; i < 4; ++i) {
      keys.push_back(*decode_hex(vectors["entries"][i]["key"].get<std::string>()));
    }
    return keys;
  }
  Session session(std::unique_ptr<Transport> transport, ProgressCallback progress = {}) const {
    ClientOptions options;
    options.cache_folder = scratch_.path();
    options.thread_count = 1;
    options.progress = std::move(progress);
    return Session(std::move(transport), "http://test", std::move(options));
  }
};

TEST_F(RepeatedRequestsTest, EachRequestOfALookUpMayFindTheServerBusyAFewTimes) {
  server_.queries_max = 1;
  server_.alter_body = [&](Bytes&) { server_.errors.assign(3, kBusy); };
  Session session = this->session(std::make_unique<FakeTransport>(server_));
  EXPECT_EQ(values_of(session, keys()).size(), 4u);
}

TEST_F(RepeatedRequestsTest, EachRequestOfALookUpMayFindItsConnectionClosed) {
  bool is_on = false;
  Session session = this->session(std::make_unique<ClosingTransport>(server_, is_on));
  server_.queries_max = 1;
  EXPECT_EQ(values_of(session, keys()).size(), 4u);  // and one query a request from now on
  is_on = true;
  EXPECT_EQ(values_of(session, keys()).size(), 4u);
}

// Closed, asked again, refused, closed: the second connection is that of another request.
TEST_F(RepeatedRequestsTest, ASmallerRequestAfterARefusalIsAnotherOne) {
  const bool is_on = true;
  server_.queries_max = 1;
  Session session = this->session(std::make_unique<ClosingTransport>(server_, is_on));
  EXPECT_EQ(values_of(session, keys()).size(), 4u);
}

TEST_F(RepeatedRequestsTest, ABusyServerIsAskedAgainForEverything) {
  const std::vector<HttpReply> busy = {kBusy, FakeServer::error(429, "too many", 0), kBusy, kBusy,
                                       kBusy};
  int waits = 0;
  Session session =
      this->session(std::make_unique<BusyTransport>(server_, busy), [&](const ClientProgress& at) {
        waits += at.stage == ClientStage::kWaitingForServer;
        return true;
      });
  EXPECT_EQ(values_of(session, keys()).size(), 4u);
  EXPECT_GE(waits, 15);  // five before the manifest, the table and the hints
}

TEST_F(RepeatedRequestsTest, ABusyServerIsNotAskedForEver) {
  const auto refused = [&](std::vector<HttpReply> busy) {
    try {
      session(std::make_unique<BusyTransport>(server_, std::move(busy)));
    } catch (const ServerBusyError& error) {
      return std::vector<uint64_t>{static_cast<uint64_t>(error.status()),
                                   error.retry_after_s().value_or(99)};
    }
    return std::vector<uint64_t>();
  };
  EXPECT_THAT(refused(std::vector(6, kBusy)), ElementsAre(503, 0));
  EXPECT_THAT(refused({FakeServer::error(429, "too many", 61)}), ElementsAre(429, 61));
  EXPECT_THAT(refused(std::vector(5, kBusy)), ElementsAre());
}

TEST_F(RepeatedRequestsTest, WaitingForTheManifestCanBeStopped) {
  const auto transport = [&] {
    return std::make_unique<BusyTransport>(server_,
                                           std::vector{FakeServer::error(503, "queue full", 30)});
  };
  EXPECT_THROW(session(transport(), [](const ClientProgress&) { return false; }), CancelledError);
}

}  // namespace
}  // namespace blindfuse
