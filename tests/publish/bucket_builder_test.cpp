// Databases whose requests are for several keys: each key in a shard of each of its buckets.
#include <gtest/gtest.h>

#include <set>

#include "src/protocol/key_hash.h"
#include "tests/publish/packed_testing.h"

namespace blindfuse::builder_testing {
namespace {

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
  // A server packs the columns of each bucket with its own public polynomials, and answers with its
  // own words.
  const auto scheduler = scheduler_of(database);
  for (const uint32_t shard : {0u, 3u, 7u}) {
    const auto at = std::ranges::find_if(pairs, [&](const auto& pair) {
      return shards_of(database.manifest, pair.first).contains(shard);
    });
    const KeyHash hash = key_hash(database.manifest.salt, at->first);
    auto rows = fuse_rows(layout.fuse(), database.table.shards[shard].filter_seed, hash.slot_hash);
    for (uint32_t& row : rows) row += shard / kBucketShards * layout.row_count;
    const auto record =
        ask_for_record(database, *scheduler, shard, std::span(rows).first(layout.arity), shard);
    EXPECT_EQ(decode_record(layout.record, hash.digest, record), at->second) << "shard " << shard;
  }
}

TEST(BucketBuilder, AChangedKeyChangesItsThreeShardsAndTheirPacks) {
  const TemporaryFolder folder;
  Pairs pairs = two_pack_pairs();
  build(pairs, folder / "db", bucket_options());
  const Epoch before = read_epoch(folder / "db");
  pairs[7].second = "changed";
  const BuildReport report = build(pairs, folder / "db");
  EXPECT_TRUE(report.layout_kept) << report.layout_reason << ", though nobody said so";
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

}  // namespace
}  // namespace blindfuse::builder_testing
