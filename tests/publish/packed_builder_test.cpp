// Databases of packed responses, from pairs to files, and from files to what a client decodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/engines/engine_factory.h"
#include "tests/publish/packed_testing.h"

namespace blindfuse::builder_testing {
namespace {

using ::testing::HasSubstr;

// Every file is named by what is in it, and has the size that it should have.
void expect_named_by_content(const std::filesystem::path& root, const Layout& layout) {
  const std::map<std::string, uint64_t> expected = {
      {"packs", kPackFileBytes},
      {"hints", uint64_t{2048} * layout.hint_bits / 8},
      {"shards", uint64_t{kTwoPackRows} * kTwoPackRecordBytes},
      {"tables", 5 * 112 + 2 * 64},
  };
  for (const auto& [name, hash] : snapshot(root)) {
    const std::string folder = name.substr(0, name.find('/'));
    if (folder == name) continue;  // the manifest and its like
    EXPECT_EQ(std::filesystem::path(name).stem().string(), hash) << name;
    if (!expected.contains(folder)) continue;
    EXPECT_EQ(std::filesystem::file_size(root / name), expected.at(folder)) << name;
  }
}

TEST(PackedBuilder, AnswersEveryKeyAndNoOther) {
  const TemporaryFolder folder;
  const std::filesystem::path root = folder / "db";
  const Pairs pairs = two_pack_pairs();
  const BuildReport report = build(pairs, root, two_pack_options());
  EXPECT_EQ(report.shards_rebuilt, 5u);
  EXPECT_EQ(report.packs_rebuilt, 2u);
  EXPECT_TRUE(report.changed);
  const LoadedDatabase database = load(root);
  const Layout& layout = database.manifest.layout;
  EXPECT_EQ(database.epoch, report.epoch);
  EXPECT_EQ(layout.mode(), Mode::kPacked);
  EXPECT_EQ(layout.lwe->name, "ring-2048");
  ASSERT_EQ(layout.record_bytes(), kTwoPackRecordBytes);
  ASSERT_EQ(layout.row_count, kTwoPackRows);
  ASSERT_EQ(database.packing_tables.size(), 2u);
  ASSERT_EQ(database.downloads->hints.size(), 2u);
  for (const auto& [key, value] : pairs) ASSERT_EQ(look_up(database, key), value) << key;
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(look_up(database, "absent " + std::to_string(i)), std::nullopt);
  }
  EXPECT_EQ(files_in(root), files_of({database.manifest, database.table}, false));
  expect_named_by_content(root, layout);
  for (const ShardEntry& shard : database.table.shards) EXPECT_EQ(shard.hint, Sha256Digest{});

  const auto scheduler = scheduler_of(database);
  for (const uint32_t shard : {0u, 3u, 4u}) {
    const auto& [key, value] = pairs[place_in_shard(pairs, database.manifest, shard)];
    EXPECT_EQ(ask(database, *scheduler, key, shard), value) << "shard " << shard;
  }
  EXPECT_EQ(ask(database, *scheduler, pairs.front().first, 5), std::string(290, 'x'));
  EXPECT_EQ(ask(database, *scheduler, "absent", 6), std::nullopt);
}

TEST(PackedBuilder, BuildsIndexDatabases) {
  const TemporaryFolder folder;
  Pairs pairs;
  for (int i = 0; i < 701; ++i) {
    pairs.emplace_back("line " + std::to_string(i), "value " + std::to_string(i));
  }
  BuildOptions options;
  options.input.kind = DatabaseKind::kIndex;
  options.lwe = find_lwe_params("ring-2048");
  options.shard_count = 2;
  options.random = fixed_random;
  const BuildReport report = build(pairs, folder / "db", options);
  EXPECT_EQ(report.packs_rebuilt, 1u);
  EXPECT_EQ(report.layout.row_count, 2048u) << "351 entries in a shard, up to a whole block";
  const LoadedDatabase database = load_database(folder / "db", *make_engine_maker("cpu", 2));
  const Layout& layout = database.manifest.layout;
  const auto scheduler = scheduler_of(database);
  for (const uint32_t i : {0u, 1u, 699u, 700u}) {
    const uint32_t row = i / 2;
    const auto record = ask_for_record(database, *scheduler, i % 2, {&row, 1}, i);
    EXPECT_EQ(decode_record(layout.record, {}, record), pairs[i].second);
  }
  EXPECT_EQ(ask_for_record(database, *scheduler, 1, {}, 9),
            std::vector<uint8_t>(layout.record_bytes()))
      << "no rows, no bytes";
}

// A shard that was lost has the same matrix again, and so its packs are right as they are.
TEST(PackedBuilder, BuildsTheSameAgainAndHealsWhatIsDamaged) {
  const TemporaryFolder folder;
  const std::filesystem::path root = folder / "db";
  const Pairs pairs = two_pack_pairs();
  const BuildReport first = build(pairs, root, two_pack_options());
  const auto before = snapshot(root);
  const Epoch epoch = read_epoch(root);
  const auto expect_same_epoch = [&](uint32_t shards_rebuilt, uint32_t packs_rebuilt) {
    const BuildReport report = build(pairs, root);
    EXPECT_EQ(report.shards_rebuilt, shards_rebuilt);
    EXPECT_EQ(report.packs_rebuilt, packs_rebuilt);
    EXPECT_FALSE(report.changed);
    EXPECT_EQ(report.epoch, first.epoch);
    EXPECT_EQ(report.layout.mode(), Mode::kPacked) << "though nobody said so";
  };
  expect_same_epoch(0, 0);
  EXPECT_EQ(snapshot(root), before);
  flip_byte(pack_file(root, epoch.table.packs[0]), kPackFileBytes - 1);
  expect_same_epoch(0, 1);
  std::filesystem::remove(mask_file(root, epoch.table.packs[1]));
  expect_same_epoch(0, 1);
  std::filesystem::resize_file(
      root / "shards" / (encode_hex(epoch.table.shards[1].matrix) + ".matrix"), 10);
  expect_same_epoch(1, 0);
  EXPECT_EQ(snapshot(root), before);
}

TEST(PackedBuilder, RebuildsThePacksWhoseColumnsChanged) {
  const TemporaryFolder folder;
  const std::filesystem::path root = folder / "db";
  Pairs pairs = two_pack_pairs();
  build(pairs, root, two_pack_options());
  Epoch epoch = read_epoch(root);
  // As long as a value may be, so that a record has other bytes in all its packs: those of shard 3
  // from byte 124 on, which is byte 114 of the value, lie in the second.
  const std::string changed(290, 'y');
  struct Case {
    uint32_t shard;
    std::vector<bool> is_rebuilt;  // a pack
  };
  for (const Case& change :
       {Case{4, {false, true}}, Case{2, {true, false}}, Case{3, {true, true}}}) {
    SCOPED_TRACE("shard " + std::to_string(change.shard));
    pairs[place_in_shard(pairs, epoch.manifest, change.shard)].second = changed;
    const BuildReport report = build(pairs, root);
    EXPECT_EQ(report.shards_rebuilt, 1u);
    EXPECT_EQ(report.packs_rebuilt, std::ranges::count(change.is_rebuilt, true));
    EXPECT_TRUE(report.changed);
    const Epoch next = read_epoch(root);
    for (size_t pack = 0; pack < 2; ++pack) {
      const PackEntry& now = next.table.packs[pack];
      const PackEntry& then = epoch.table.packs[pack];
      EXPECT_EQ(now.table != then.table, change.is_rebuilt[pack]) << pack;
      EXPECT_EQ(now.mask != then.mask, change.is_rebuilt[pack]) << pack;
    }
    EXPECT_EQ(files_in(root), files_of(next, true)) << "and nothing of the epoch before";
    epoch = next;
  }
  const LoadedDatabase database = load(root);
  const auto scheduler = scheduler_of(database);
  for (uint32_t shard = 1; shard < 5; ++shard) {
    const auto& [key, value] = pairs[place_in_shard(pairs, epoch.manifest, shard)];
    EXPECT_EQ(value == changed, shard != 1);
    EXPECT_EQ(ask(database, *scheduler, key, shard), value) << "shard " << shard;
  }
}

TEST(PackedBuilder, ChangesTheModeInPlace) {
  const TemporaryFolder folder;
  const std::filesystem::path root = folder / "db";
  const Pairs pairs = numbered_pairs(200, "value");
  BuildOptions options = two_pack_options();
  options.shard_count = 3;
  options.mode = Mode::kHint;
  const BuildReport hint = build(pairs, root, options);
  EXPECT_EQ(hint.layout.mode(), Mode::kHint);
  EXPECT_EQ(hint.packs_rebuilt, 0u);
  EXPECT_EQ(files_in(root), files_of(read_epoch(root), false));

  options.mode = Mode::kPacked;
  const BuildReport packed = build(pairs, root, options);
  EXPECT_EQ(packed.layout.mode(), Mode::kPacked);
  EXPECT_THAT(packed.layout_reason, HasSubstr("chosen again, because the mode changed"));
  EXPECT_EQ(packed.shards_rebuilt, 3u);
  EXPECT_EQ(packed.packs_rebuilt, 1u);
  EXPECT_TRUE(packed.changed);
  EXPECT_NE(packed.epoch, hint.epoch);
  EXPECT_EQ(files_in(root), files_of(read_epoch(root), true));
  LoadedDatabase database = load(root);
  for (const auto& [key, value] : pairs) ASSERT_EQ(look_up(database, key), value);
  EXPECT_EQ(database.retired, std::vector<EpochId>{hint.epoch});

  options.mode = Mode::kHint;
  const BuildReport again = build(pairs, root, options);
  EXPECT_EQ(again.layout, hint.layout);
  EXPECT_EQ(again.epoch, hint.epoch) << "of the same salt, seed and layout";
  EXPECT_TRUE(again.changed);
  EXPECT_EQ(files_in(root), files_of(read_epoch(root), true));
  EXPECT_EQ(std::filesystem::exists(root / "packs") && !std::filesystem::is_empty(root / "packs"),
            false);
  database = load(root);
  EXPECT_TRUE(database.packing_tables.empty());
  for (const auto& [key, value] : pairs) ASSERT_EQ(look_up(database, key), value);
}

}  // namespace
}  // namespace blindfuse::builder_testing
