#include "client/session.h"

#include <blindfuse/errors.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "tests/client/client_testing.h"
#include "tests/client/fake_server.h"
#include "tests/client/look_ups.h"
#include "tests/client/seeded_random.h"

namespace blindfuse {
namespace {

using testing::HasSubstr;

using SessionTest = FakeServerTest;

TEST_F(SessionTest, GetsEveryKeyOfTheDatabase) {
  const uint64_t hint_bytes = server_.database.layout().hint_bytes();
  for (const uint64_t kept_bytes_max : {hint_bytes, hint_bytes - 1}) {
    ClientOptions options = this->options();
    options.hint_memory_bytes_max = kept_bytes_max;
    Session session = this->session(std::move(options));
    const size_t count = entries_.size();
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
  EXPECT_THAT(message_of<EpochGoneError>([&] { value_of(session, key(0)); }),
              HasSubstr("epoch retired"));
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
  Session session = this->session(options);
  value_of(session, key(0));
  EXPECT_EQ(session.prepared_count(), 9u);
  values_of(session, keys(12));
  EXPECT_EQ(session.prepared_count(), 7u);
  options.prepare_batch = 0;  // no more than a call needs
  Session careful = this->session(options);
  careful.prepare(5);
  values_of(careful, keys(12));
  EXPECT_EQ(careful.prepared_count(), 0u);
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

TEST_F(SessionTest, ASourceWithoutRandomnessIsAnError) {
  const auto none = [](std::span<uint8_t>) { throw ResourceError("none left"); };
  Session session = this->session(options(), none);
  EXPECT_THROW(value_of(session, key(0)), ResourceError);
  EXPECT_EQ(server_.count("/queries"), 0u);
}

struct RefusedDatabase {
  const char* name;
  ServedDatabase database;
  uint64_t ClientOptions::*limit;
  uint64_t bytes;
};

// With a limit that is one byte lower, and before anything is fetched or asked for.
TEST_F(SessionTest, DatabasesThatAreTooLargeAreRefused) {
  const ServedDatabase& keyword = server_.database;
  const ServedDatabase long_values = ServedDatabase::with_noise(1, 1024, 0);
  ASSERT_LT(long_values.layout().query_bytes(), long_values.layout().response_bytes());
  const auto hints = &ClientOptions::hint_bytes_max, transfers = &ClientOptions::transfer_bytes_max;
  for (const RefusedDatabase& each :
       {RefusedDatabase{"hints", keyword, hints, keyword.layout().hint_bytes()},
        {"query", keyword, transfers, keyword.layout().query_bytes()},
        {"response", long_values, transfers, long_values.layout().response_bytes()},
        {"table", ServedDatabase::with_noise(400, 2, 0), transfers, 400 * 112}}) {
    SCOPED_TRACE(each.name);
    FakeServer server(each.database);
    ClientOptions options = this->options();
    options.cache_folder /= each.name;
    options.*each.limit = each.bytes - 1;
    Session refused = session(std::make_unique<FakeTransport>(server), options);
    EXPECT_THROW(refused.sync(), InputError);
    EXPECT_THROW(value_of(refused, "1"), InputError);
    EXPECT_EQ(server.count("/v1/database"), server.requests.size());
    options.*each.limit = each.bytes;
    EXPECT_NO_THROW(session(std::make_unique<FakeTransport>(server), options).sync());
  }
}

// What secrecy rests on is not the server's choice where the client has made one.
TEST_F(SessionTest, ADatabaseInAnotherModeIsRefusedBeforeAnythingIsAsked) {
  for (const auto& [wanted, other] : {std::pair("packed", "hint"), std::pair("hint", "packed")}) {
    ClientOptions options = this->options();
    options.mode = wanted;
    Session session = this->session(options);
    EXPECT_THROW(session.sync(), InputError);
    EXPECT_EQ(message_of<InputError>([&] { value_of(session, key(0)); }),
              "this database is in the mode " + std::string(other) + ", and only the mode " +
                  wanted + " is accepted (--mode)");
    EXPECT_EQ(server_.count("/v1/database"), server_.requests.size());
    options.mode = other;
    EXPECT_NO_THROW(this->session(options).sync());
    server_.database = ServedDatabase::with_noise(3, 2, 0, "ring-2048", 18);
    server_.requests.clear();
  }
}

}  // namespace
}  // namespace blindfuse
