// The cache of a database with packed responses, whose hint is the masks of its packs.
#include <blindfuse/errors.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "client/hint_cache.h"
#include "tests/client/client_testing.h"
#include "tests/client/fake_server.h"

namespace blindfuse {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

// 4500 columns: four whole packs, and one of 404.
constexpr uint32_t kPackedShards = 9;
constexpr uint32_t kRecordBytes = 500;
constexpr uint32_t kPacks = 5;
constexpr uint64_t kMaskBytes = 2048 * 18 / 8;

class PackedHintCache : public testing::Test {
 protected:
  ScratchFolder scratch_;
  const std::filesystem::path folder_ = scratch_.path() / "database";
  FakeServer server_{ServedDatabase::with_noise(kPackedShards, kRecordBytes, 0, "ring-2048", 18)};
  RemoteDatabase remote_{std::make_unique<FakeTransport>(server_), "http://test"};

  SyncResult sync(HintCache& cache, bool verify = false) {
    SyncResult result;
    cache.sync(remote_, server_.database.manifest_text(), verify, {}, result);
    return result;
  }

  DatabaseDescription description() const {
    return DatabaseDescription(server_.database.manifest_text(), server_.database.table());
  }

  // The masks of these packs, one after another.
  Bytes masks(const std::vector<size_t>& packs) const {
    Bytes all;
    for (const size_t pack : packs) {
      const Bytes& mask = server_.database.hints().at(pack);
      all.insert(all.end(), mask.begin(), mask.end());
    }
    return all;
  }

  // A shard's 500 columns begin at 500 times its number, a pack's 1024 at 1024 times its number:
  // none lies in more than two, and all have two, that in which they begin and the next, or at the
  // end the one before.
  void expect_all_hints(const HintCache& cache) const {
    const std::vector<std::vector<size_t>> packs_of_shards = {
        {0, 1}, {0, 1}, {0, 1}, {1, 2}, {1, 2}, {2, 3}, {2, 3}, {3, 4}, {3, 4}};
    const DatabaseDescription database = description();
    for (uint32_t shard = 0; shard < kPackedShards; ++shard) {
      EXPECT_EQ(cache.read_hint(database, shard), masks(packs_of_shards[shard])) << shard;
    }
  }

  std::filesystem::path mask_path(uint32_t pack) const {
    return folder_ / "hints" / hint_file_name(description().epoch_table().packs[pack].mask);
  }

  size_t file_count() const {
    const std::filesystem::directory_iterator files(folder_ / "hints");
    return static_cast<size_t>(std::distance(begin(files), end(files)));
  }

  static void alter(const std::filesystem::path& path) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(0);
    file.put(byte);
  }
};

TEST_F(PackedHintCache, FetchesAllMasksOnce) {
  HintCache cache(folder_);
  const SyncResult first = sync(cache);
  EXPECT_EQ(first.shard_count, kPackedShards);
  EXPECT_EQ(first.part_count, kPacks);
  EXPECT_EQ(first.shards_fetched, kPacks);
  EXPECT_EQ(first.hint_bytes, kPacks * kMaskBytes);
  EXPECT_EQ(first.bytes_fetched, kPacks * kMaskBytes + kPackedShards * 112 + kPacks * 64);
  ASSERT_EQ(server_.count("/hint?"), 1u);
  EXPECT_THAT(server_.requests.back().path, EndsWith("/hint?packs=0-4"));
  expect_all_hints(cache);
  EXPECT_EQ(file_count(), kPacks);

  server_.requests.clear();
  EXPECT_EQ(sync(cache).bytes_fetched, 0u);
  EXPECT_TRUE(server_.requests.empty());
  const HintCache reopened(folder_);
  ASSERT_TRUE(reopened.stored());
  EXPECT_EQ(reopened.stored()->epoch(), server_.database.epoch());
  EXPECT_EQ(reopened.stored()->epoch_table(), description().epoch_table());
}

TEST_F(PackedHintCache, FetchesOnlyChangedMasksAndRemovesTheOld) {
  HintCache cache(folder_);
  sync(cache);
  server_.database = server_.database.with_other_noise(1, 1).with_other_noise(4, 1);
  const SyncResult result = sync(cache);
  EXPECT_EQ(result.shards_fetched, 2u);
  EXPECT_THAT(server_.requests.back().path, EndsWith("packs=1,4"));
  expect_all_hints(cache);
  EXPECT_EQ(file_count(), kPacks);
}

TEST_F(PackedHintCache, AMaskThatIsNotTheTablesIsRefused) {
  HintCache cache(folder_);
  server_.alter_body = [](Bytes& body) {
    if (body.size() == kPacks * kMaskBytes) body[kMaskBytes + 5] ^= 1;
  };
  EXPECT_THAT(message_of<ProtocolError>([&] { sync(cache); }), HasSubstr("the mask of pack 1 "));
  EXPECT_FALSE(cache.stored());
}

TEST_F(PackedHintCache, AnAlteredMaskFailsTheShardsThatNeedItAndIsFetchedWithAllOthers) {
  HintCache cache(folder_);
  sync(cache);
  server_.requests.clear();
  alter(mask_path(1));
  // Also those that only have it, and hold nothing in it.
  for (uint32_t shard = 0; shard < 5; ++shard) {
    EXPECT_THROW(cache.read_hint(description(), shard), CacheError) << shard;
  }
  EXPECT_EQ(cache.read_hint(description(), 5), masks({2, 3}));
  EXPECT_EQ(cache.read_hint(description(), 8), masks({3, 4}));
  EXPECT_TRUE(server_.requests.empty());

  EXPECT_EQ(sync(cache, true).shards_fetched, kPacks);
  EXPECT_THAT(server_.requests.back().path, EndsWith("packs=0-4"));
  expect_all_hints(cache);
  std::filesystem::remove(mask_path(3));
  EXPECT_FALSE(cache.stored());
  EXPECT_EQ(sync(cache).shards_fetched, kPacks);
  expect_all_hints(cache);
}

TEST_F(PackedHintCache, FollowsADatabaseFromOneModeToTheOther) {
  const ServedDatabase packed = server_.database;
  HintCache cache(folder_);
  server_.database = ServedDatabase::with_noise(3, 2, 0);
  EXPECT_EQ(sync(cache).shards_fetched, 3u);
  server_.database = packed;
  EXPECT_EQ(sync(cache).shards_fetched, kPacks);
  EXPECT_EQ(file_count(), kPacks);
  expect_all_hints(cache);
  server_.database = ServedDatabase::with_noise(3, 2, 0);
  EXPECT_EQ(sync(cache).shards_fetched, 3u);
  EXPECT_EQ(file_count(), 3u);
  EXPECT_EQ(cache.read_hint(description(), 2), server_.database.hints()[2]);
}

}  // namespace
}  // namespace blindfuse
