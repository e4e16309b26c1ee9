// Look-ups with packed responses, from a key to its value.
#include <blindfuse/client.h>
#include <blindfuse/errors.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "client/ring_query.h"
#include "client/session.h"
#include "tests/client/client_testing.h"
#include "tests/client/fake_server.h"
#include "tests/client/http_fake_server.h"
#include "tests/client/look_ups.h"
#include "tests/client/packed_database.h"

namespace blindfuse {
namespace {

// 24 keys whose values are of any bytes, and long enough to lie in both packs in shard 1.
KeyValues some_values() {
  std::mt19937 random(17);
  KeyValues values;
  for (int i = 0; i < 24; ++i) {
    std::string value(PackedDatabase::kValueBytes - random() % 100, '\0');
    for (char& c : value) c = static_cast<char>(random());
    values["key-" + std::to_string(i)] = value;
  }
  values["empty"] = "";
  return values;
}

class PackedSessionTest : public FakeServerTest {
 protected:
  PackedSessionTest() : FakeServerTest(PackedDatabase::serve(some_values())) {}

  KeyValues values_ = some_values();

  // The first `count` keys of a shard.
  std::vector<std::string> keys_of_shard(uint32_t shard, size_t count) const {
    std::vector<std::string> keys;
    for (const auto& [key, value] : values_) {
      if (keys.size() < count && PackedDatabase::shard_of(key) == shard) keys.push_back(key);
    }
    EXPECT_EQ(keys.size(), count);
    return keys;
  }
};

TEST_F(PackedSessionTest, TooManyMasksAreRefusedBeforeAnythingIsFetched) {
  Manifest manifest = PackedDatabase({}).manifest();
  Layout& layout = manifest.layout;
  layout.key_count = 1;
  layout.shard_count = 65'536;
  layout.record = {8, 2, 1'014};  // columns of 65,536 packs
  const auto refusal = [&](size_t tables) {
    EpochTable table;
    table.shards.resize(layout.shard_count);
    table.packs.resize(layout.pack_count());
    FakeServer greedy(ServedDatabase(manifest, table, {}, nullptr));
    const auto sync = [&] { session(std::make_unique<FakeTransport>(greedy), options()).sync(); };
    const std::string message = message_of<std::exception>(sync);
    EXPECT_EQ(greedy.count("/shards"), tables);
    return message;
  };
  EXPECT_THAT(refusal(1), testing::Not(testing::HasSubstr("at most")));
  layout.record.value_bytes = 1'015;
  EXPECT_EQ(refusal(0), "this database has 65600 masks, and a client takes at most 65536");
}

TEST_F(PackedSessionTest, GetsValuesOfEveryShard) {
  std::vector<std::string> keys = {"empty", "no such key"};
  for (uint32_t shard = 0; shard < PackedDatabase::kShards; ++shard) {
    for (const std::string& key : keys_of_shard(shard, 2)) keys.push_back(key);
  }
  Session session = this->session();
  const auto values = values_of(session, keys);
  ASSERT_EQ(values.size(), keys.size());
  EXPECT_EQ(values[0], "");
  EXPECT_EQ(values[1], std::nullopt);
  for (size_t i = 2; i < keys.size(); ++i) EXPECT_EQ(values[i], values_.at(keys[i])) << keys[i];

  const auto hints = server_.seen("/hint?");
  ASSERT_EQ(hints.size(), 1u);
  EXPECT_TRUE(hints[0].path.ends_with("/hint?packs=0-1")) << hints[0].path;
  const auto asked = server_.seen("/queries");
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].body.size(), keys.size() * PackedDatabase::kQueryBytes);
}

TEST_F(PackedSessionTest, ANewEpochBringsTheMasksOfChangedPacksAlone) {
  Session session = this->session();
  const std::string changed = keys_of_shard(2, 1).front();
  session.prepare(4);
  EXPECT_EQ(value_of(session, changed), values_.at(changed));
  values_.at(changed) = "another value";
  const Bytes first_mask = server_.database.hints().at(0);
  server_.database = PackedDatabase::serve(values_);
  ASSERT_EQ(server_.database.hints().at(0), first_mask);

  const SyncResult result = session.sync();
  EXPECT_EQ(result.part_count, 2u);
  EXPECT_EQ(result.shards_fetched, 1u);
  EXPECT_TRUE(server_.seen("/hint?").at(1).path.ends_with("packs=1"));
  // Queries made before are of the same public polynomials.
  EXPECT_EQ(session.prepared_count(), 3u);
  std::vector<std::string> keys = {changed};
  for (uint32_t shard = 0; shard < 2; ++shard) keys.push_back(keys_of_shard(shard, 1).front());
  const auto values = values_of(session, keys);
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(values[i], values_.at(keys[i])) << keys[i];
}

class PackedQueriesTest : public FakeServerTest {
 protected:
  PackedQueriesTest() : FakeServerTest(ServedDatabase::with_noise(3, 601, 0, "ring-2048", 18)) {}

  static constexpr size_t kNoiseQueryBytes = 4 * 2048 + 24'576;  // of 32 bits

  Session session_ = session();
};

TEST_F(PackedQueriesTest, HaveFreshKeysEach) {
  session_.prepare(2);
  const std::vector<std::string> same = {"1", "1"};
  values_of(session_, same);
  value_of(session_, "1");
  std::set<Bytes> words, keys;
  for (const SeenRequest& request : server_.seen("/queries")) {
    ASSERT_EQ(request.body.size() % kNoiseQueryBytes, 0u);
    for (size_t at = 0; at < request.body.size(); at += kNoiseQueryBytes) {
      words.insert(reference_pir::slice(request.body, at, 4 * 2048));
      const Bytes sent = reference_pir::slice(request.body, at + 4 * 2048, 24'576);
      EXPECT_NO_THROW(check_packing_key(sent));
      keys.insert(sent);
    }
  }
  EXPECT_EQ(words.size(), 3u);
  EXPECT_EQ(keys.size(), 3u);
}

// Their answers would mean nothing.
TEST_F(PackedQueriesTest, OfOtherDatabasesAreNotTaken) {
  Manifest manifest = session_.database().manifest();
  const auto take = [&] {
    session_.add_prepared(prepare_queries_for(manifest, 2, 1, fill_from_system), 0);
  };
  take();
  EXPECT_EQ(session_.prepared_count(), 2u);
  manifest.seed[0] ^= 1;
  EXPECT_DEATH(take(), "a query is for this database");
  manifest.seed[0] ^= 1;
  manifest.layout.lwe = find_lwe_params("lwe-1774");
  EXPECT_DEATH(take(), "a query is for this database");
}

TEST_F(PackedQueriesTest, AreForADatabaseWhoseModeIsTold) {
  HttpFakeServer http(server_);
  Client client = Client::connect(http.url(), options());
  const DatabaseInfo info = client.database();
  EXPECT_EQ(info.mode, "packed");
  EXPECT_EQ(info.parameter_set, "ring-2048");
  EXPECT_EQ(info.query_bytes, kNoiseQueryBytes);
  EXPECT_EQ(info.hint_bytes, 2 * 4608u);
  EXPECT_EQ(client.look_up(std::vector<uint64_t>{1}).at(0).query_bytes, kNoiseQueryBytes);
  server_.database = ServedDatabase::with_noise(3, 10, 0);
  client.sync();
  EXPECT_EQ(client.database().mode, "hint");
}

}  // namespace
}  // namespace blindfuse
