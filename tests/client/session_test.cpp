#include "client/session.h"

#include <blindfuse/errors.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "tests/client/fake_server.h"
#include "tests/client/look_ups.h"
#include "tests/client/scratch_folder.h"
#include "tests/client/seeded_random.h"

namespace blindfuse {
namespace {

using testing::HasSubstr;

class SessionTest : public testing::Test {
 protected:
  ScratchFolder scratch_;
  FakeServer server_{ServedDatabase::from_vectors("database_keyword.json")};
  const nlohmann::json vectors_ = read_vectors("database_keyword.json");

  ClientOptions options() const {
    ClientOptions options;
    options.cache_folder = scratch_.path();
    options.thread_count = 1;
    return options;
  }
  Session session() { return session(options()); }
  Session session(ClientOptions options, RandomSource random = fill_from_system) {
    return Session(std::make_unique<FakeTransport>(server_), "http://test", std::move(options),
                   std::move(random));
  }

  // Keys and values as the vectors have them.
  std::string key(size_t i) const { return *decode_hex(text(i, "key")); }
  std::string value(size_t i) const { return *decode_hex(text(i, "value")); }
  std::vector<std::string> keys(size_t count) const {
    std::vector<std::string> result;
    for (size_t i = 0; i < count; ++i) result.push_back(key(i));
    return result;
  }

  // No two requests carried the same query.
  void expect_all_queries_differ() const {
    const uint64_t query_bytes = server_.database.layout().query_bytes();
    std::set<Bytes> queries;
    size_t count = 0;
    for (const SeenRequest& request : server_.seen("/queries")) {
      ASSERT_EQ(request.body.size() % query_bytes, 0u);
      for (size_t at = 0; at < request.body.size(); at += query_bytes, ++count) {
        queries.insert(reference_pir::slice(request.body, at, query_bytes));
      }
    }
    EXPECT_EQ(queries.size(), count);
  }

 private:
  std::string text(size_t i, const char* member) const { return vectors_["entries"][i][member]; }
};

TEST_F(SessionTest, GetsEveryKeyOfTheDatabase) {
  const uint64_t hint_bytes = server_.database.layout().hint_bytes();
  for (const uint64_t kept_bytes_max : {hint_bytes, hint_bytes - 1}) {
    ClientOptions options = this->options();
    options.hint_memory_bytes_max = kept_bytes_max;
    Session session = this->session(std::move(options));
    const size_t count = vectors_["entries"].size();
    const auto values = values_of(session, keys(count));
    ASSERT_EQ(values.size(), count);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(values[i], value(i)) << i;
  }
  expect_all_queries_differ();
}

TEST_F(SessionTest, AnAbsentKeyIsNothing) {
  Session session = this->session();
  EXPECT_EQ(value_of(session, "no such key"), std::nullopt);
  EXPECT_EQ(value_of(session, key(3)), value(3));
  EXPECT_EQ(server_.count("/queries"), 2u);
}

TEST_F(SessionTest, NoKeysAreNoRequests) {
  Session session = this->session();
  EXPECT_TRUE(values_of(session, std::vector<std::string>()).empty());
  EXPECT_EQ(server_.count("/queries"), 0u);
}

TEST_F(SessionTest, AnIndexBeyondTheEndIsAskedForAndNotThere) {
  server_.database = ServedDatabase::from_vectors("database_index.json");
  const nlohmann::json vectors = read_vectors("database_index.json");
  Session session = this->session();
  EXPECT_EQ(value_of(session, "152"), decode_hex(vectors["values"][152].get<std::string>()));
  EXPECT_EQ(value_of(session, "290"), std::nullopt);
  EXPECT_EQ(value_of(session, "99999999999999999999999999"), std::nullopt);
  const auto asked = server_.seen("/queries");
  ASSERT_EQ(asked.size(), 3u);
  for (const SeenRequest& request : asked) {
    EXPECT_EQ(request.body.size(), server_.database.layout().query_bytes());
  }
  EXPECT_THROW(value_of(session, "twelve"), InputError);
  EXPECT_EQ(server_.count("/queries"), 3u);
}

TEST_F(SessionTest, AKeyThatCannotBeIsRefusedBeforeAnyIsAskedFor) {
  Session session = this->session();
  const std::vector<std::string> some = {key(0), std::string(65'537, 'x')};
  EXPECT_THROW(values_of(session, some), InputError);
  EXPECT_EQ(server_.count("/queries"), 0u);
}

TEST_F(SessionTest, SyncsByItselfAndOnlyWhenTheEpochIsNew) {
  value_of(session(), key(0));
  EXPECT_EQ(server_.count("/hint?"), 1u);
  Session second = session();
  value_of(second, key(0));
  EXPECT_EQ(server_.count("/hint?"), 1u);
  EXPECT_EQ(server_.count("/v1/database"), 2u);
  server_.database = server_.database.with_shard_incremented(1);
  value_of(session(), key(0));
  EXPECT_EQ(server_.count("/hint?"), 2u);
  EXPECT_TRUE(server_.seen("/hint?")[1].path.ends_with("shards=1"));
}

TEST_F(SessionTest, ManyKeysShareRequests) {
  Session session = this->session();
  values_of(session, keys(20));
  std::vector<size_t> sizes;
  for (const SeenRequest& request : server_.seen("/queries")) {
    sizes.push_back(request.body.size() / server_.database.layout().query_bytes());
  }
  EXPECT_EQ(sizes, (std::vector<size_t>{16, 4}));
}

TEST_F(SessionTest, AServerThatTakesFewerQueriesIsAskedOneByOne) {
  server_.queries_max = 3;
  Session session = this->session();
  const auto values = values_of(session, keys(10));
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(values[i], value(i));
  EXPECT_EQ(server_.count("/queries"), 11u);
  expect_all_queries_differ();
}

TEST_F(SessionTest, ABusyServerIsAskedAgainWithAFreshQuery) {
  server_.errors = {FakeServer::error(503, "queue full", 0),
                    FakeServer::error(503, "queue full", 0)};
  Session session = this->session();
  EXPECT_EQ(value_of(session, key(5)), value(5));
  EXPECT_EQ(server_.count("/queries"), 3u);
  expect_all_queries_differ();
}

TEST_F(SessionTest, ABusyServerIsNotAskedForEver) {
  server_.errors.assign(100, FakeServer::error(503, "queue full", 0));
  Session session = this->session();
  EXPECT_THROW(value_of(session, key(5)), ServerBusyError);
  EXPECT_EQ(server_.count("/queries"), 6u);
  expect_all_queries_differ();
  server_.errors = {FakeServer::error(503, "down for the night", 30'000)};
  EXPECT_THROW(value_of(session, key(5)), ServerBusyError);
  EXPECT_EQ(server_.count("/queries"), 7u);
}

TEST_F(SessionTest, WaitingForABusyServerCanBeStopped) {
  server_.errors = {FakeServer::error(503, "queue full", 60)};
  ClientOptions options = this->options();
  options.progress = [](const ClientProgress& progress) {
    return progress.stage != ClientStage::kWaitingForServer;
  };
  Session session = this->session(std::move(options));
  EXPECT_THROW(value_of(session, key(5)), CancelledError);
}

TEST_F(SessionTest, ARetiredEpochIsSyncedOnceAndAskedAgainWithAFreshQuery) {
  Session session = this->session();
  EXPECT_EQ(value_of(session, key(12)), value(12));
  const ServedDatabase original = server_.database;
  // Every byte of shard 0 plus 3: the digests of its keys no longer fit.
  server_.database = original.with_shard_incremented(0);
  size_t gone = 0;
  for (size_t i = 0; i < 8; ++i) {
    const auto found = value_of(session, key(i));
    gone += !found.has_value();
    EXPECT_EQ(found.value_or(value(i)), value(i));
  }
  EXPECT_GT(gone, 0u);
  EXPECT_LT(gone, 8u);
  EXPECT_EQ(server_.count("/hint?"), 2u);
  EXPECT_EQ(server_.count("/queries"), 10u);
  expect_all_queries_differ();
  server_.database = original;
  EXPECT_EQ(value_of(session, key(0)), value(0));
}

TEST_F(SessionTest, AnEpochThatStaysGoneIsAnError) {
  Session session = this->session();
  server_.errors.assign(10, FakeServer::error(410, "epoch retired"));
  try {
    value_of(session, key(0));
    FAIL();
  } catch (const EpochGoneError& gone) {
    EXPECT_THAT(gone.what(), HasSubstr("epoch retired"));
  }
  EXPECT_EQ(server_.count("/queries"), 2u);
}

TEST_F(SessionTest, AnEpochThatGoesBeforeTheFirstSyncIsMastered) {
  Session session = this->session();
  server_.database = server_.database.with_shard_incremented(1);
  EXPECT_EQ(session.sync().epoch, server_.database.epoch());
  Session second = this->session();
  second.sync();
  server_.database = ServedDatabase::from_vectors("database_keyword.json");
  EXPECT_EQ(value_of(second, key(0)), value(0));
}

TEST_F(SessionTest, AnEpochThatGoesInTheMiddleIsAskedForFromTheBeginning) {
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

TEST_F(SessionTest, ADatabaseThatBecomesOneOfAnotherKindIsNotAsked) {
  Session session = this->session();
  session.sync();
  const ServedDatabase original = server_.database;
  server_.database = ServedDatabase::from_vectors("database_index.json");
  // Of all keys the same is seen: also of those that can be none in the other kind.
  size_t asked = 0;
  for (const char* key : {"12", "twelve", "12"}) {
    EXPECT_THROW(value_of(session, key), ProtocolError) << key;
    EXPECT_EQ(server_.count("/queries"), ++asked);
  }
  EXPECT_THROW(session.sync(), ProtocolError);
  EXPECT_EQ(server_.count("/hint?"), 1u);
  server_.database = original;
  EXPECT_EQ(value_of(session, key(0)), value(0));
}

TEST_F(SessionTest, TheKindOfADatabaseThatWasNeverUsedIsRemembered) {
  Session session = this->session();
  server_.database = ServedDatabase::from_vectors("database_index.json");
  EXPECT_THROW(session.prepare(1), ProtocolError);
  EXPECT_THROW(value_of(session, "12"), ProtocolError);
  EXPECT_THROW(session.sync(), ProtocolError);
  EXPECT_EQ(server_.count("/queries"), 0u);
  EXPECT_EQ(server_.count("/hint?"), 0u);
}

TEST_F(SessionTest, AllRequestsAreSentBeforeAnyAnswerIsDecoded) {
  ClientOptions options = this->options();
  options.hint_memory_bytes_max = 0;
  Session session = this->session(std::move(options));
  value_of(session, key(0));
  // No answer can be decoded.
  std::filesystem::remove_all(database_folder(scratch_.path(), "http://test") / "hints");
  EXPECT_THROW(values_of(session, keys(20)), CacheError);
  EXPECT_EQ(server_.count("/queries"), 3u);
}

TEST_F(SessionTest, ALookUpCanBeMadeInSteps) {
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

TEST_F(SessionTest, AnEpochThatGoesBetweenStepsIsAskedForFromTheBeginningOnce) {
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

TEST_F(SessionTest, NoKeysAreAskedForInNoSteps) {
  Session session = this->session();
  Steps steps(session, {});
  EXPECT_EQ(steps->queries_left(), 0u);
  EXPECT_TRUE(std::move(*steps).decode().empty());
}

// The answers are of the hints that a synchronization there and back has closed.
TEST_F(SessionTest, HintsAreOpenedAgainForTheAnswers) {
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
TEST_F(SessionTest, StepsGoOnInTheEpochOfTheSession) {
  Session session = this->session();
  Steps steps(session, keys(8));
  EXPECT_EQ(steps->ask(3), 5u);
  server_.database = server_.database.with_other_seed();
  session.sync();
  EXPECT_EQ(steps->ask(3), 5u);
  EXPECT_EQ(steps->ask(5), 0u);
  EXPECT_EQ(std::move(*steps).decode().back().value, value(7));
}

TEST_F(SessionTest, AFailedRequestUsesItsQueryUp) {
  Session session = this->session();
  session.prepare(2);
  server_.errors = {FakeServer::error(500, "out of order")};
  EXPECT_THROW(value_of(session, key(0)), ServerError);
  EXPECT_EQ(session.prepared_count(), 1u);
  EXPECT_EQ(value_of(session, key(0)), value(0));
  EXPECT_EQ(session.prepared_count(), 0u);
  expect_all_queries_differ();
}

TEST_F(SessionTest, QueriesPreparedAheadAreUsedUpAndOutliveAnEpochWithTheSameMatrix) {
  Session session = this->session();
  session.prepare(5);
  EXPECT_EQ(session.prepared_count(), 5u);
  value_of(session, key(0));
  EXPECT_EQ(session.prepared_count(), 4u);
  server_.database = server_.database.with_shard_incremented(0);
  session.sync();
  EXPECT_EQ(session.prepared_count(), 4u);
  server_.database = ServedDatabase::from_vectors("database_keyword.json").with_other_seed();
  session.sync();
  EXPECT_EQ(session.prepared_count(), 0u);
  EXPECT_EQ(value_of(session, key(1)), value(1));
}

TEST_F(SessionTest, PreparesInBatchesWhenNoneAreLeft) {
  ClientOptions options = this->options();
  options.prepare_batch = 10;
  Session session = this->session(std::move(options));
  value_of(session, key(0));
  EXPECT_EQ(session.prepared_count(), 9u);
  values_of(session, keys(12));
  EXPECT_EQ(session.prepared_count(), 7u);
}

TEST_F(SessionTest, PreparesNoMoreThanACallNeeds) {
  ClientOptions options = this->options();
  options.prepare_batch = 0;
  Session session = this->session(std::move(options));
  session.prepare(5);
  values_of(session, keys(12));
  EXPECT_EQ(session.prepared_count(), 0u);
}

TEST_F(SessionTest, AnAlteredHintIsAnErrorThatFetchesNothing) {
  Session session = this->session();
  session.sync();
  server_.requests.clear();
  const std::filesystem::path hints = database_folder(scratch_.path(), "http://test") / "hints";
  for (const auto& entry : std::filesystem::directory_iterator(hints)) {
    std::fstream(entry.path(), std::ios::in | std::ios::out | std::ios::binary).put('\x55');
  }
  try {
    value_of(session, key(0));
    FAIL();
  } catch (const CacheError& error) {
    EXPECT_THAT(error.what(), HasSubstr("sync --verify"));
  }
  EXPECT_EQ(server_.count("/hint?"), 0u);
  EXPECT_EQ(server_.count("/queries"), 0u);
  session.sync(true);
  EXPECT_EQ(server_.count("/hint?"), 1u);
  EXPECT_EQ(value_of(session, key(0)), value(0));
}

TEST_F(SessionTest, AWrongResponseIsAnError) {
  Session session = this->session();
  session.sync();
  const uint64_t response_bytes = server_.database.layout().response_bytes();
  for (const uint64_t length : {response_bytes - 1, response_bytes + 1, uint64_t{0}}) {
    server_.alter_body = [&](Bytes& body) { body.resize(length); };
    EXPECT_THROW(value_of(session, key(0)), ProtocolError) << length;
  }
  server_.alter_body = [&](Bytes& body) { body.back() |= 0x80; };
  EXPECT_THROW(value_of(session, key(0)), ProtocolError);
  server_.alter_body = nullptr;
  EXPECT_EQ(value_of(session, key(0)), value(0));
  expect_all_queries_differ();
}

TEST_F(SessionTest, ADatabaseThatIsTooLargeIsRefusedBeforeAnythingIsFetched) {
  ClientOptions options = this->options();
  options.hint_bytes_max = server_.database.layout().hint_bytes() - 1;
  Session hints = session(options);
  EXPECT_THROW(hints.sync(), InputError);
  EXPECT_THROW(value_of(hints, key(0)), InputError);
  options = this->options();
  options.transfer_bytes_max = server_.database.layout().query_bytes() - 1;
  Session transfers = session(options);
  EXPECT_THROW(transfers.sync(), InputError);
  FakeServer many_shards(ServedDatabase::with_noise(400, 2, 0));  // a table of 400 * 112 bytes
  options.transfer_bytes_max = 400 * 112 - 1;
  Session tables(std::make_unique<FakeTransport>(many_shards), "http://test", options);
  EXPECT_THROW(tables.sync(), InputError);
  EXPECT_EQ(many_shards.count("/shards"), 0u);
  EXPECT_EQ(server_.count("/hint?"), 0u);
  EXPECT_EQ(server_.count("/shards"), 0u);
  EXPECT_EQ(server_.count("/queries"), 0u);
}

TEST_F(SessionTest, AResponseThatIsTooLongIsRefusedBeforeAnythingIsFetched) {
  FakeServer long_values(ServedDatabase::with_noise(1, 1024, 0));
  const Layout& layout = long_values.database.layout();
  ASSERT_LT(layout.query_bytes(), layout.response_bytes());
  ClientOptions options = this->options();
  options.transfer_bytes_max = layout.response_bytes() - 1;
  Session refused(std::make_unique<FakeTransport>(long_values), "http://test", options);
  EXPECT_THROW(refused.sync(), InputError);
  EXPECT_EQ(long_values.count("/hint?"), 0u);
  EXPECT_EQ(long_values.count("/shards"), 0u);
  options.transfer_bytes_max = layout.response_bytes();
  Session accepted(std::make_unique<FakeTransport>(long_values), "http://test", options);
  EXPECT_EQ(accepted.sync().shards_fetched, 1u);
}

// The epoch before is served for its time of grace, and would still answer.
TEST_F(SessionTest, ANewSessionAsksTheCurrentEpochWhateverTheCacheHas) {
  session().sync();
  const EpochId before = server_.database.epoch();
  server_.in_grace = server_.database;
  server_.database = server_.database.with_other_seed();
  server_.requests.clear();
  Session session = this->session();
  EXPECT_EQ(value_of(session, key(0)), value(0));
  EXPECT_EQ(server_.count(server_.database.epoch() + "/queries"), 1u);
  EXPECT_EQ(server_.count(before), 0u) << "nothing is asked of the epoch in the cache";
}

// What secrecy rests on is not the server's choice where the client has made one.
TEST_F(SessionTest, ADatabaseInAnotherModeIsRefusedBeforeAnythingIsAsked) {
  ClientOptions options = this->options();
  options.mode = "packed";
  Session packed = session(options);
  EXPECT_THROW(packed.sync(), InputError);
  EXPECT_THROW(value_of(packed, key(0)), InputError);
  EXPECT_EQ(server_.count("/hint?"), 0u);
  EXPECT_EQ(server_.count("/shards"), 0u);
  EXPECT_EQ(server_.count("/queries"), 0u);
  options.mode = "hint";
  EXPECT_EQ(value_of(session(options), "no such key"), std::nullopt);
}

TEST_F(SessionTest, ASourceWithoutRandomnessIsAnError) {
  const auto none = [](std::span<uint8_t>) { throw ResourceError("none left"); };
  Session session = this->session(options(), none);
  EXPECT_THROW(value_of(session, key(0)), ResourceError);
  EXPECT_EQ(server_.count("/queries"), 0u);
}

TEST_F(SessionTest, CheckingWhatIsThereCanBeStopped) {
  session().sync();
  ClientOptions options = this->options();
  std::vector<uint64_t> checked;
  options.progress = [&](const ClientProgress& progress) {
    if (progress.stage != ClientStage::kCheckingHints) return true;
    checked.push_back(progress.done);
    EXPECT_EQ(progress.total, server_.database.layout().hint_bytes());
    return checked.size() < 2;
  };
  Session second = session(options);
  EXPECT_THROW(second.sync(true), CancelledError);
  EXPECT_EQ(checked, (std::vector<uint64_t>{0, server_.database.layout().hint_part_bytes()}));
}

TEST_F(SessionTest, SaysWhatALookUpTook) {
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

}  // namespace
}  // namespace blindfuse
