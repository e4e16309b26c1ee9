// Look-ups, all at once and in steps, of servers that are busy, slow, or close their connections.
#include "client/look_up.h"

#include <blindfuse/errors.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/session.h"
#include "src/arithmetic/lwe_params.h"
#include "tests/client/client_testing.h"
#include "tests/client/fake_server.h"
#include "tests/client/look_ups.h"

namespace blindfuse {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const HttpReply kBusy = FakeServer::error(503, "queue full", 0);

// A look-up in steps, with its keys.
class Steps {
 public:
  Steps(Session& session, std::vector<std::string> keys)
      : keys_(std::move(keys)), views_(keys_.begin(), keys_.end()), look_up_(session, views_) {}
  LookUp& operator*() { return look_up_; }
  LookUp* operator->() { return &look_up_; }

 private:
  const std::vector<std::string> keys_;
  const std::vector<std::string_view> views_;
  LookUp look_up_;
};

using LookUpTest = FakeServerTest;

TEST_F(LookUpTest, NoKeysAreNoRequests) {
  Session session = this->session();
  EXPECT_TRUE(values_of(session, std::vector<std::string>()).empty());
  Steps steps(session, {});
  EXPECT_EQ(steps->queries_left(), 0u);
  EXPECT_TRUE(std::move(*steps).decode().empty());
  EXPECT_EQ(server_.count("/queries"), 0u);
}

TEST_F(LookUpTest, ManyKeysShareRequests) {
  Session session = this->session();
  values_of(session, keys(20));
  std::vector<size_t> sizes;
  for (const SeenRequest& request : server_.seen("/queries")) {
    sizes.push_back(request.body.size() / server_.database.layout().query_bytes());
  }
  EXPECT_EQ(sizes, (std::vector<size_t>{16, 4}));
}

TEST_F(LookUpTest, AServerThatTakesFewerQueriesIsAskedOneByOne) {
  server_.queries_max = 3;
  Session session = this->session();
  const auto values = values_of(session, keys(10));
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(values[i], value(i));
  EXPECT_EQ(server_.count("/queries"), 11u);
  expect_all_queries_differ();
}

TEST_F(LookUpTest, ABusyServerIsAskedAgainWithAFreshQuery) {
  server_.errors = {FakeServer::error(503, "queue full", 0),
                    FakeServer::error(503, "queue full", 0)};
  Session session = this->session();
  EXPECT_EQ(value_of(session, key(5)), value(5));
  EXPECT_EQ(server_.count("/queries"), 3u);
  expect_all_queries_differ();
}

TEST_F(LookUpTest, ALookUpCanBeMadeInSteps) {
  Session session = this->session();
  Steps steps(session, keys(20));
  EXPECT_EQ(steps->queries_left(), 20u);
  EXPECT_EQ(server_.count("/queries"), 0u);
  EXPECT_EQ(steps->ask(5), 15u);
  EXPECT_EQ(steps->ask(100), 0u);
  EXPECT_EQ(server_.count("/queries"), 2u);
  const std::vector<Answer> answers = std::move(*steps).decode();
  ASSERT_EQ(answers.size(), 20u);
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(answers[i].value, value(i)) << i;
  expect_all_queries_differ();

  // One that failed, and another one after it.
  Steps failed(session, keys(20));
  server_.errors = {FakeServer::error(500, "out of order")};
  EXPECT_THROW(failed->ask(3), ServerError);
  EXPECT_EQ(failed->ask(3), 17u);  // the same step again
  Steps other(session, {key(7)});
  EXPECT_EQ(other->queries_left(), 1u);
  EXPECT_EQ(other->ask(1), 0u);
  EXPECT_EQ(std::move(*other).decode().front().value, value(7));
}

TEST_F(LookUpTest, AnEpochThatGoesBetweenStepsIsAskedForFromTheBeginningOnce) {
  Session session = this->session();
  Steps steps(session, keys(8));
  EXPECT_EQ(steps->ask(3), 5u);
  const ServedDatabase original = server_.database, next = original.with_other_seed();
  server_.database = next;
  EXPECT_EQ(steps->ask(3), 5u);  // the first three of all
  EXPECT_EQ(steps->ask(5), 0u);
  const std::vector<Answer> answers = std::move(*steps).decode();
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(answers[i].value, value(i)) << i;
  Steps more(session, keys(8));
  EXPECT_EQ(more->ask(3), 5u);
  server_.database = original;
  EXPECT_EQ(more->ask(3), 5u);
  server_.database = next;
  EXPECT_THROW(more->ask(3), EpochGoneError);
}

// The answers are of the hints that a synchronization there and back has closed.
TEST_F(LookUpTest, HintsAreOpenedAgainForTheAnswers) {
  Session session = this->session();
  Steps steps(session, keys(2));
  EXPECT_EQ(steps->ask(2), 0u);
  const ServedDatabase original = server_.database;
  server_.database = original.with_other_seed();
  session.sync();
  server_.database = original;
  session.sync();
  EXPECT_EQ(std::move(*steps).decode().back().value, value(1));
}

// A session may synchronize for another reason.
TEST_F(LookUpTest, StepsGoOnInTheEpochOfTheSession) {
  Session session = this->session();
  Steps steps(session, keys(8));
  EXPECT_EQ(steps->ask(3), 5u);
  server_.database = server_.database.with_other_seed();
  session.sync();
  EXPECT_EQ(steps->ask(3), 5u);
  EXPECT_EQ(steps->ask(5), 0u);
  EXPECT_EQ(std::move(*steps).decode().back().value, value(7));
}

TEST_F(LookUpTest, AFailedRequestUsesItsQueryUp) {
  Session session = this->session();
  session.prepare(2);
  server_.errors = {FakeServer::error(500, "out of order")};
  EXPECT_THROW(value_of(session, key(0)), ServerError);
  EXPECT_EQ(session.prepared_count(), 1u);
  EXPECT_EQ(value_of(session, key(0)), value(0));
  EXPECT_EQ(session.prepared_count(), 0u);
  expect_all_queries_differ();
}

TEST_F(LookUpTest, AllRequestsAreSentBeforeAnyAnswerIsDecoded) {
  ClientOptions options = this->options();
  options.hint_memory_bytes_max = 0;
  Session session = this->session(std::move(options));
  value_of(session, key(0));
  // No answer can be decoded.
  std::filesystem::remove_all(database_folder(scratch_.path(), "http://test") / "hints");
  EXPECT_THROW(values_of(session, keys(20)), CacheError);
  EXPECT_EQ(server_.count("/queries"), 3u);
}

TEST_F(LookUpTest, SaysWhatALookUpTook) {
  Session session = this->session();
  const std::vector<std::string> two = keys(2);
  for (const Answer& answer : answers_of(session, two)) {
    EXPECT_EQ(answer.query_bytes, server_.database.layout().query_bytes());
    EXPECT_EQ(answer.response_bytes, server_.database.layout().response_bytes());
    EXPECT_GT(answer.prepare_seconds, 0);
    EXPECT_GT(answer.decode_seconds, 0);
    EXPECT_EQ(answer.request_keys, 2u);
    EXPECT_GE(answer.total_seconds,
              answer.prepare_seconds + answer.server_seconds + answer.decode_seconds);
  }
}

TEST_F(LookUpTest, AnEpochThatGoesInTheMiddleIsAskedForFromTheBeginning) {
  Session session = this->session();
  session.sync();
  size_t answered = 0;
  const ServedDatabase next = server_.database.with_other_seed();
  server_.alter_body = [&](Bytes& body) {
    const uint64_t bytes = 16 * server_.database.layout().response_bytes();
    if (body.size() == bytes && ++answered == 1) server_.database = next;
  };
  const auto values = values_of(session, keys(20));
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], value(i)) << i;
  EXPECT_EQ(server_.count("/queries"), 4u);  // one answered, one refused, and both
  expect_all_queries_differ();
}

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

TEST_F(LookUpTest, EachRequestOfALookUpMayFindTheServerBusyAFewTimes) {
  server_.queries_max = 1;
  server_.alter_body = [&](Bytes&) { server_.errors.assign(3, kBusy); };
  Session session = this->session();
  EXPECT_EQ(values_of(session, keys(4)).size(), 4u);
}

TEST_F(LookUpTest, EachRequestOfALookUpMayFindItsConnectionClosed) {
  bool is_on = false;
  Session session = this->session(std::make_unique<ClosingTransport>(server_, is_on), options());
  server_.queries_max = 1;
  EXPECT_EQ(values_of(session, keys(4)).size(), 4u);  // and one query a request from now on
  is_on = true;
  EXPECT_EQ(values_of(session, keys(4)).size(), 4u);
}

// Closed, asked again, refused, closed: the second connection is that of another request.
TEST_F(LookUpTest, ASmallerRequestAfterARefusalIsAnotherOne) {
  const bool is_on = true;
  server_.queries_max = 1;
  Session session = this->session(std::make_unique<ClosingTransport>(server_, is_on), options());
  EXPECT_EQ(values_of(session, keys(4)).size(), 4u);
}

TEST_F(LookUpTest, ABusyServerIsAskedAgainForEverything) {
  const std::vector<HttpReply> busy = {kBusy, FakeServer::error(429, "too many", 0), kBusy, kBusy,
                                       kBusy};
  int waits = 0;
  ClientOptions options = this->options();
  options.progress = [&](const ClientProgress& at) {
    waits += at.stage == ClientStage::kWaitingForServer;
    return true;
  };
  Session session = this->session(std::make_unique<BusyTransport>(server_, busy), options);
  EXPECT_EQ(values_of(session, keys(4)).size(), 4u);
  EXPECT_GE(waits, 15);  // five before the manifest, the table and the hints
}

TEST_F(LookUpTest, ABusyServerIsNotAskedForEver) {
  const auto refused = [&](std::vector<HttpReply> busy) {
    try {
      session(std::make_unique<BusyTransport>(server_, std::move(busy)), options());
    } catch (const ServerBusyError& error) {
      return std::vector<uint64_t>{static_cast<uint64_t>(error.status()),
                                   error.retry_after_s().value_or(99)};
    }
    return std::vector<uint64_t>();
  };
  EXPECT_THAT(refused(std::vector(6, kBusy)), ElementsAre(503, 0));
  EXPECT_THAT(refused({FakeServer::error(429, "too many", 61)}), ElementsAre(429, 61));
  EXPECT_THAT(refused(std::vector(5, kBusy)), ElementsAre());
  // For values, too.
  Session session = this->session();
  for (const auto& [busy, requests] :
       {std::pair(std::vector(100, kBusy), 6u),
        std::pair(std::vector{FakeServer::error(503, "down for the night", 30'000)}, 7u)}) {
    server_.errors.assign(busy.begin(), busy.end());
    EXPECT_THROW(value_of(session, key(5)), ServerBusyError);
    EXPECT_EQ(server_.count("/queries"), requests);
  }
  expect_all_queries_differ();
}

TEST_F(LookUpTest, WaitingForABusyServerCanBeStopped) {
  const HttpReply busy = FakeServer::error(503, "queue full", 30);
  ClientOptions options = this->options();
  options.progress = [](const ClientProgress& progress) {
    return progress.stage != ClientStage::kWaitingForServer;
  };
  EXPECT_THROW(session(std::make_unique<BusyTransport>(server_, std::vector{busy}), options),
               CancelledError);
  server_.errors = {busy};
  Session session = this->session(options);
  EXPECT_THROW(value_of(session, key(5)), CancelledError);
}

Layout layout_of(const char* lwe, uint32_t value_bytes, uint32_t shard_count) {
  return {.kind = DatabaseKind::kKeyword,
          .key_count = 1'000'000,
          .shard_count = shard_count,
          .row_count = 4096,
          .arity = 3,
          .segment_length = 512,
          .record = {8, 2, value_bytes},
          .lwe = find_lwe_params(lwe),
          .query_bits = 32,
          .response_bits = 10,
          .hint_bits = 18,
          .second = {},
          .batch = {}};
}

// By hand: a query keeps 4 bytes for each of the 1,034 bytes of its record, 128 of its place,
// 16,384 of secrets, and then 1,024 of the key and as many of the value. 256 MiB / 16 / (4 * 1,034
// + 128 + 16,384 + 2,048) = 739.2 requests.
TEST(KeysAtOnce, FillRequestsOfSingleKeysAndMemory) {
  EXPECT_EQ(keys_at_once(layout_of("lwe-1774", 1'024, 300)), 739u * 16);
  EXPECT_EQ(keys_at_once(layout_of("ring-2048", 1'024, 300)), 739u * 16);
}

// 96 * (4 * 1,034 + 128) + 16,384 + 64 * 2,048 = 556,800 bytes a request: 482.1 of them.
TEST(KeysAtOnce, FillRequestsOfSeveralKeys) {
  Layout layout = layout_of("ring-2048", 1'024, 96 * 4);
  layout.batch = BatchCode{.keys_per_request = 64, .bucket_count = 96};
  EXPECT_EQ(keys_at_once(layout), 482u * 64);
}

// 1,024 * 131,072 bytes of values, and 1,536 times 4 times 131,082 of words, are more than all.
TEST(KeysAtOnce, AreThoseOfOneRequestAtLeast) {
  Layout layout = layout_of("ring-2048", 131'072, 1'536);
  layout.batch = BatchCode{.keys_per_request = 1'024, .bucket_count = 1'536};
  EXPECT_EQ(keys_at_once(layout), 1'024u);
}

// Of 4 bytes a row.
TEST(QueriesAtOnce, AreFewerWhereTheyAreLarge) {
  Layout layout = layout_of("lwe-1774", 1'024, 300);
  EXPECT_EQ(queries_at_once(layout), 16u);
  layout.row_count = 1 << 22;
  EXPECT_EQ(queries_at_once(layout), 16u);
  layout.row_count += 64;
  EXPECT_EQ(queries_at_once(layout), 15u);
  layout.row_count = 1 << 26;
  EXPECT_EQ(queries_at_once(layout), 1u);
  layout.row_count = 1 << 28;
  EXPECT_EQ(queries_at_once(layout), 1u);
  layout = layout_of("lwe-1774", 131'072, 1'000);  // 131,082,000 words of 10 bits
  EXPECT_EQ(queries_at_once(layout), 1u);
}

}  // namespace
}  // namespace blindfuse
