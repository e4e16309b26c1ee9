// Look-ups with packed responses, from a key to its value.
#include <blindfuse/client.h>
#include <blindfuse/errors.h>
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "client/ring_query.h"
#include "client/session.h"
#include "tests/client/batch_database.h"
#include "tests/client/fake_server.h"
#include "tests/client/http_fake_server.h"
#include "tests/client/look_ups.h"
#include "tests/client/packed_database.h"
#include "tests/client/scratch_folder.h"

namespace blindfuse {
namespace {

constexpr size_t kWordsBytes = 2048 * 28 / 8;
constexpr size_t kQueryBytes = kWordsBytes + 24'576;

// 24 keys whose values are of any bytes, and long enough to lie in both packs in shard 1.
PackedDatabase::Values some_values() {
  std::mt19937 random(17);
  PackedDatabase::Values values;
  for (int i = 0; i < 24; ++i) {
    std::string value(PackedDatabase::kValueBytes - random() % 100, '\0');
    for (char& c : value) c = static_cast<char>(random());
    values["key-" + std::to_string(i)] = value;
  }
  values["empty"] = "";
  return values;
}

class PackedSessionTest : public testing::Test {
 protected:
  ScratchFolder scratch_;
  PackedDatabase::Values values_ = some_values();
  FakeServer server_{PackedDatabase::serve(values_)};

  Session session() {
    ClientOptions options;
    options.cache_folder = scratch_.path();
    return Session(std::make_unique<FakeTransport>(server_), "http://test", std::move(options));
  }

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

// The names of masks, and the words of a response until they are decoded, would fill the memory.
TEST_F(PackedSessionTest, TooManyMasksAreRefusedBeforeAnythingIsFetched) {
  Manifest manifest = BatchDatabase({}).manifest();
  Layout& layout = manifest.layout;
  layout.key_count = 1;
  layout.batch.reset();
  layout.shard_count = 65'536;
  layout.record = {8, 2, 1'014};  // columns of 65,536 packs
  ClientOptions options;
  options.cache_folder = scratch_.path();
  const auto refusal = [&] {
    EpochTable table;
    table.shards.resize(layout.shard_count);
    table.packs.resize(layout.pack_count());
    FakeServer greedy(ServedDatabase(manifest, table, {}, nullptr));
    std::string error;
    try {
      Session(std::make_unique<FakeTransport>(greedy), "http://test", options).sync();
    } catch (const InputError& refused) {
      error = refused.what();
      EXPECT_EQ(greedy.requests.size(), 1u);
    } catch (const std::exception&) {
      EXPECT_EQ(greedy.count("/shards"), 1u);
    }
    return error;
  };
  EXPECT_EQ(refusal(), "");
  layout.record.value_bytes = 1'015;
  EXPECT_EQ(refusal(), "this database has 65600 masks, and a client takes at most 65536");
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
  EXPECT_EQ(asked[0].body.size(), keys.size() * kQueryBytes);
}

TEST_F(PackedSessionTest, QueriesOfABatchAreAsGoodAsOthers) {
  Session session = this->session();
  session.prepare(3);
  for (const std::string& key : keys_of_shard(1, 3))
    EXPECT_EQ(value_of(session, key), values_.at(key));
  EXPECT_EQ(session.prepared_count(), 0u);
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

TEST_F(PackedSessionTest, IsRefusedByAClientThatWantsHints) {
  ClientOptions options;
  options.cache_folder = scratch_.path();
  options.mode = "hint";
  Session session(std::make_unique<FakeTransport>(server_), "http://test", options);
  try {
    value_of(session, "empty");
    ADD_FAILURE() << "asked";
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()),
              "this database is in the mode packed, and only the mode hint is accepted (--mode)");
  }
  EXPECT_EQ(server_.seen("/queries").size() + server_.seen("/hint?").size(), 0u);
}

// What is sent, to a server whose answers mean nothing.
class PackedQueriesTest : public testing::Test {
 protected:
  PackedQueriesTest() {
    ClientOptions options;
    options.cache_folder = scratch_.path();
    session_.emplace(std::make_unique<FakeTransport>(server_), "http://test", std::move(options));
  }

  static constexpr size_t kNoiseQueryBytes = 4 * 2048 + 24'576;  // of 32 bits

  ScratchFolder scratch_;
  FakeServer server_{ServedDatabase::with_noise(3, 601, 0, "ring-2048", 18)};
  std::optional<Session> session_;
};

TEST_F(PackedQueriesTest, HaveFreshKeysEach) {
  session_->prepare(2);
  const std::vector<std::string> same = {"1", "1"};
  values_of(*session_, same);
  value_of(*session_, "1");
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

TEST_F(PackedQueriesTest, AreUsedUpByARequestThatFails) {
  session_->prepare(2);
  server_.errors = {FakeServer::error(500, "out of order")};
  EXPECT_THROW(value_of(*session_, "1"), ServerError);
  EXPECT_EQ(session_->prepared_count(), 1u);
  value_of(*session_, "1");
  EXPECT_EQ(session_->prepared_count(), 0u);
  const auto asked = server_.seen("/queries");
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_NE(asked[0].body, asked[1].body);
}

TEST_F(PackedQueriesTest, AreNoneOfADatabaseThatLostItsPacks) {
  session_->prepare(2);
  server_.database = ServedDatabase::with_noise(3, 10, 0);
  session_->sync();
  EXPECT_EQ(session_->prepared_count(), 0u);
  value_of(*session_, "1");
  EXPECT_EQ(server_.seen("/queries").at(0).body.size(), server_.database.layout().query_bytes());
}

TEST_F(PackedQueriesTest, AreNoneOfADatabaseWithOtherPolynomials) {
  session_->prepare(2);
  server_.database = server_.database.with_other_seed();
  session_->sync();
  EXPECT_EQ(session_->prepared_count(), 0u);
  value_of(*session_, "1");
  EXPECT_EQ(server_.count("/queries"), 1u);
}

// Their answers would mean nothing.
TEST_F(PackedQueriesTest, OfOtherDatabasesAreNotTaken) {
  Manifest manifest = session_->database().manifest();
  const auto take = [&] {
    session_->add_prepared(prepare_queries_for(manifest, 2, 1, fill_from_system), 0);
  };
  take();
  EXPECT_EQ(session_->prepared_count(), 2u);
  manifest.seed[0] ^= 1;
  EXPECT_DEATH(take(), "a query is for this database");
  manifest.seed[0] ^= 1;
  manifest.layout.lwe = find_lwe_params("lwe-1774");
  EXPECT_DEATH(take(), "a query is for this database");
}

TEST_F(PackedQueriesTest, AreForADatabaseWhoseModeIsTold) {
  HttpFakeServer http(server_);
  ClientOptions options;
  options.cache_folder = scratch_.path();
  Client client = Client::connect(http.url(), std::move(options));
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
