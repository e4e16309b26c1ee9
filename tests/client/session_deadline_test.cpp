// Look-ups that meet a slow server, or one that closes its connections.
#include <blindfuse/errors.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "client/session.h"
#include "tests/client/fake_server.h"
#include "tests/client/hand_clock.h"
#include "tests/client/look_ups.h"
#include "tests/client/scratch_folder.h"

namespace blindfuse {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

// Says before each query what becomes of it.
class WatchedTransport : public FakeTransport {
 public:
  WatchedTransport(FakeServer& server, std::function<void()> on_post)
      : FakeTransport(server), on_post_(std::move(on_post)) {}

  HttpReply post(const std::string& path, std::span<const uint8_t> body,
                 BodyReceiver& receiver) override {
    HttpReply reply = FakeTransport::post(path, body, receiver);
    on_post_();
    return reply;
  }

 private:
  std::function<void()> on_post_;
};

class SessionDeadlineTest : public testing::Test {
 protected:
  ScratchFolder scratch_;
  HandClock clock_;
  ProgressCallback progress_;
  FakeServer server_{ServedDatabase::from_vectors("database_keyword.json")};
  const nlohmann::json entries_ = read_vectors("database_keyword.json")["entries"];
  const std::string key_ = *decode_hex(entries_[3]["key"].get<std::string>());
  const std::string value_ = *decode_hex(entries_[3]["value"].get<std::string>());

  // Of one look-up, with what it moves.
  milliseconds allowed(size_t count) const {
    const Layout& layout = server_.database.layout();
    return milliseconds(60'000 + count * (layout.query_bytes() + layout.response_bytes()) / 32);
  }

  Session session(std::function<void()> on_post, RandomSource random = fill_from_system) {
    ClientOptions options;
    options.cache_folder = scratch_.path();
    options.thread_count = 1;
    options.progress = progress_;
    return Session(std::make_unique<WatchedTransport>(server_, std::move(on_post)), "http://test",
                   std::move(options), std::move(random), HintFiles::kOnDisk, clock_.clock());
  }

  size_t distinct_queries() const {
    std::set<Bytes> bodies;
    for (const SeenRequest& request : server_.seen("/queries")) bodies.insert(request.body);
    return bodies.size();
  }
};

TEST_F(SessionDeadlineTest, SeveralRequestsAreOneCall) {
  Session session = this->session([this] { clock_.advance(seconds(25)); });
  session.sync();
  // Before the last of four requests 75 s have gone.
  const std::vector<std::string> keys(60, key_);
  ASSERT_LT(allowed(60), seconds(75));
  try {
    values_of(session, keys);
    FAIL();
  } catch (const ConnectionError& trouble) {
    EXPECT_THAT(trouble.what(), HasSubstr("the call to http://test was not done in"));
    EXPECT_THAT(trouble.what(), HasSubstr("allow more with --timeout"));
  }
  EXPECT_EQ(value_of(session, key_), value_) << "the next call has its own time";
}

TEST_F(SessionDeadlineTest, LargeRequestsHaveTheTimeForTheirBytes) {
  size_t count = 0;
  Session session = this->session([&] { clock_.advance(allowed(count) - milliseconds(1)); });
  session.sync();
  count = 16;
  EXPECT_EQ(values_of(session, std::vector<std::string>(16, key_)).at(15), value_);
}

TEST_F(SessionDeadlineTest, WhatTheClientComputesIsNotTheServersTime) {
  bool is_slow = false;
  const auto slow_random = [&](std::span<uint8_t> bytes) {
    if (is_slow) clock_.advance(hours(1));
    fill_from_system(bytes);
  };
  Session session = this->session([] {}, slow_random);
  session.sync();
  is_slow = true;
  EXPECT_EQ(value_of(session, key_), value_);
}

TEST_F(SessionDeadlineTest, ReadingHintsAndDecodingIsNotTheServersTime) {
  for (const ClientStage slow : {ClientStage::kCheckingHints, ClientStage::kDecodingAnswers}) {
    progress_ = [&, slow](const ClientProgress& progress) {
      if (progress.stage == slow) clock_.advance(hours(1));
      return true;
    };
    Session session = this->session([] {});
    session.sync();
    const Deadline::Call call(session.deadline());
    EXPECT_EQ(value_of(session, key_), value_);
    EXPECT_EQ(value_of(session, key_), value_);
  }
}

TEST_F(SessionDeadlineTest, ABusyServerIsNotWaitedForLongerThanTheCallMayTake) {
  server_.errors = {FakeServer::error(503, "queue full", 0),
                    FakeServer::error(503, "queue full", 30)};
  Session session = this->session([this] { clock_.advance(seconds(40)); });
  session.sync();
  try {
    value_of(session, key_);
    FAIL();
  } catch (const ServerBusyError& busy) {
    EXPECT_EQ(busy.retry_after_s(), 30u);
  }
}

TEST_F(SessionDeadlineTest, AnEpochThatChangesGivesNoNewCall) {
  const ServedDatabase other = server_.database.with_other_seed();
  Session session = this->session([this] { clock_.advance(hours(1)); });
  session.sync();
  server_.errors = {FakeServer::error(410, "retired")};
  server_.database = other;
  EXPECT_THROW(value_of(session, key_), ConnectionError);
  EXPECT_EQ(server_.count("/queries"), 1u);
}

TEST_F(SessionDeadlineTest, AConnectionThatClosedUnderAQueryGetsANewQueryOnce) {
  // Where no key is, and where one is.
  for (const std::string& key : {key_, std::string("no such key")}) {
    SCOPED_TRACE(key == key_);
    server_.requests.clear();
    int closes = 1;
    Session session = this->session([&] {
      if (closes-- > 0) throw KeptConnectionClosed("closed");
    });
    EXPECT_EQ(value_of(session, key).has_value(), key == key_);
    EXPECT_EQ(server_.count("/queries"), 2u);
    EXPECT_EQ(distinct_queries(), 2u) << "a query was sent twice";
    closes = 2;
    EXPECT_THROW(value_of(session, key), KeptConnectionClosed);
    EXPECT_EQ(server_.count("/queries"), 4u);
    EXPECT_EQ(distinct_queries(), 4u);
  }
}

}  // namespace
}  // namespace blindfuse
