// Databases whose requests are for several keys: each key in a shard of each of its buckets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "src/protocol/key_hash.h"
#include "tests/publish/packed_testing.h"

namespace blindfuse::builder_testing {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kBuckets = 4;
constexpr uint32_t kBucketShards = 2;

// Eight shards of 300 columns in three packs of 1024: no bucket begins where a pack does.
BuildOptions bucket_options() {
  BuildOptions options = two_pack_options();
  options.batch = BatchCode{.keys_per_request = 2, .bucket_count = kBuckets};
  options.shard_count = kBuckets * kBucketShards;
  return options;
}

// The shards that should hold a key, one in each of its buckets.
std::set<uint32_t> shards_of(const Manifest& manifest, const std::string& key) {
  const KeyHash hash = key_hash(manifest.salt, key);
  std::set<uint32_t> shards;
  for (const uint32_t bucket : BucketChooser(kBuckets)(hash)) {
    shards.insert(bucket * kBucketShards + shard_of(hash.shard_hash, kBucketShards));
  }
  return shards;
}

TEST(BucketBuilder, EveryKeyIsInAShardOfEachOfItsBucketsAndNowhereElse) {
  const TemporaryFolder folder;
  const Pairs pairs = two_pack_pairs();
  const BuildReport report = build(pairs, folder / "db", bucket_options());
  EXPECT_EQ(report.shards_rebuilt, kBuckets * kBucketShards);
  EXPECT_EQ(report.packs_rebuilt, 3u);
  const LoadedDatabase database = load(folder / "db");
  const Layout& layout = database.manifest.layout;
  ASSERT_TRUE(layout.batch);
  EXPECT_EQ(layout.batch->keys_per_request, 2u);
  EXPECT_EQ(layout.key_count, pairs.size());
  EXPECT_EQ(layout.record_count(), 3 * pairs.size());
  uint64_t records = 0;
  for (const ShardEntry& shard : database.table.shards) records += shard.key_count;
  EXPECT_EQ(records, 3 * pairs.size());
  for (const auto& [key, value] : pairs) {
    const std::set<uint32_t> shards = shards_of(database.manifest, key);
    ASSERT_EQ(shards.size(), 3u) << key;
    for (uint32_t shard = 0; shard < layout.shard_count; ++shard) {
      const auto found = look_up_in(database, shard, key_hash(database.manifest.salt, key));
      ASSERT_EQ(found, shards.contains(shard) ? std::optional(value) : std::nullopt)
          << key << ", shard " << shard;
    }
  }
}

TEST(BucketBuilder, AChangedKeyChangesItsThreeShardsAndTheirPacks) {
  const TemporaryFolder folder;
  Pairs pairs = two_pack_pairs();
  build(pairs, folder / "db", bucket_options());
  const Epoch before = read_epoch(folder / "db");
  pairs[7].second = "changed";
  const BuildReport report = build(pairs, folder / "db", bucket_options());
  EXPECT_TRUE(report.layout_kept) << report.layout_reason;
  const Epoch after = read_epoch(folder / "db");
  const std::set<uint32_t> expected = shards_of(before.manifest, pairs[7].first);
  std::set<uint32_t> changed, packs;
  for (uint32_t shard = 0; shard < after.table.shards.size(); ++shard) {
    if (after.table.shards[shard].matrix != before.table.shards[shard].matrix) {
      changed.insert(shard);
    }
  }
  EXPECT_EQ(changed, expected);
  for (const uint32_t shard : expected) {
    packs.insert(shard * 300 / 1024);
    packs.insert((shard * 300 + 299) / 1024);
  }
  EXPECT_EQ(report.packs_rebuilt, packs.size());
}

TEST(BucketBuilder, ABuildWithoutTheOptionKeepsBuckets) {
  const TemporaryFolder folder;
  const Pairs pairs = two_pack_pairs();
  build(pairs, folder / "db", bucket_options());
  BuildOptions silent;
  silent.random = fixed_random;
  const BuildReport report = build(pairs, folder / "db", silent);
  EXPECT_TRUE(report.layout_kept) << report.layout_reason;
  EXPECT_FALSE(report.changed);
}

TEST(BucketBuilder, AnotherNumberOfKeysIsAnotherLayout) {
  const TemporaryFolder folder;
  const Pairs pairs = two_pack_pairs();
  build(pairs, folder / "db", bucket_options());
  BuildOptions options = bucket_options();
  options.batch = BatchCode{.keys_per_request = 3, .bucket_count = 6};
  options.shard_count.reset();
  const BuildReport report = build(pairs, folder / "db", options);
  EXPECT_FALSE(report.layout_kept);
  EXPECT_THAT(report.layout_reason, HasSubstr("keys"));
  const LoadedDatabase database = load(folder / "db");
  EXPECT_EQ(database.manifest.layout.bucket_count(), 6u);
  const uint32_t shards = database.manifest.layout.bucket_shard_count();
  const KeyHash hash = key_hash(database.manifest.salt, pairs[5].first);
  for (const uint32_t bucket : BucketChooser(6)(hash)) {
    const uint32_t shard = bucket * shards + shard_of(hash.shard_hash, shards);
    EXPECT_EQ(look_up_in(database, shard, hash), pairs[5].second);
  }
}

}  // namespace
}  // namespace blindfuse::builder_testing
