// Databases of packed responses in memory: what is checked, and what two epochs share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "host/database/loaded_database.h"
#include "src/base/errors.h"
#include "src/protocol/sha256.h"
#include "tests/publish/loading_error.h"
#include "tests/publish/packed_testing.h"

namespace blindfuse::builder_testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST(PackedLoading, NamesAFileThatIsTruncatedAlteredOrMissing) {
  const TemporaryFolder folder;
  const fs::path root = folder / "db";
  BuildOptions options = two_pack_options();
  options.shard_count = 2;
  build({{"a", "1"}, {"b", "22"}, {"c", "333"}}, root, options);
  const Epoch epoch = read_epoch(root);
  ASSERT_EQ(epoch.table.packs.size(), 1u);
  const fs::path mask = mask_file(root, epoch.table.packs[0]);
  const fs::path pack = pack_file(root, epoch.table.packs[0]);
  ASSERT_EQ(fs::file_size(pack), kPackFileBytes);
  for (const fs::path& path : {mask, pack}) {
    const fs::path good = folder / "good";
    fs::copy_file(path, good, fs::copy_options::overwrite_existing);
    const uint64_t size = fs::file_size(path);
    const std::vector<std::pair<const char*, std::function<void()>>> damages = {
        {"shorter", [&] { fs::resize_file(path, size - 4); }},
        {"longer", [&] { fs::resize_file(path, size + 4); }},
        {"empty", [&] { fs::resize_file(path, 0); }},
        {"first byte", [&] { flip_byte(path, 0); }},
        {"last byte", [&] { flip_byte(path, size - 1); }},
        {"missing", [&] { fs::remove(path); }},
    };
    for (const auto& [name, damage] : damages) {
      SCOPED_TRACE(name);
      damage();
      EXPECT_THAT(error_of_loading(root), HasSubstr(fs::relative(path, root).string()));
      fs::copy_file(good, path, fs::copy_options::overwrite_existing);
    }
  }
  EXPECT_EQ(error_of_loading(root), "nothing was thrown");
}

Sha256Digest hash_of_table(const SharedPackingTable& table) {
  return sha256({reinterpret_cast<const uint8_t*>(table.get()), kPackFileBytes});
}

// Two packs, and another epoch, in which shard 4 changed, and with it the second pack.
class ReloadedPacks : public ::testing::Test {
 protected:
  void SetUp() override {
    build(pairs_, root_, two_pack_options());
    old_ = load(root_);
    pairs_[place_in_shard(pairs_, old_.manifest, 4)].second = "changed";
    build(pairs_, root_, {});
    epoch_ = read_epoch(root_);
    ASSERT_EQ(epoch_.table.packs[0], old_.table.packs[0]);
    ASSERT_NE(epoch_.table.packs[1].table, old_.table.packs[1].table);
  }

  const TemporaryFolder folder_;
  const fs::path root_ = folder_ / "db";
  Pairs pairs_ = two_pack_pairs();
  LoadedDatabase old_;
  Epoch epoch_;
};

TEST_F(ReloadedPacks, TakesWhatHasNotChangedFromTheEpochBefore) {
  // What is the same is not read again.
  fs::remove(pack_file(root_, epoch_.table.packs[0]));
  fs::remove(mask_file(root_, epoch_.table.packs[0]));
  EXPECT_NE(error_of_loading(root_), "nothing was thrown");
  LoadedDatabase database = load_database(root_, support::kPlainEngines, &old_);
  EXPECT_EQ(database.packing_tables[0].get(), old_.packing_tables[0].get()) << "the same memory";
  EXPECT_NE(database.packing_tables[1].get(), old_.packing_tables[1].get());
  EXPECT_EQ(database.downloads->hints[0].get(), old_.downloads->hints[0].get());
  EXPECT_NE(database.downloads->hints[1].get(), old_.downloads->hints[1].get());
  EXPECT_EQ(database.reused_bytes, 4 * uint64_t{kTwoPackRows} * kTwoPackRecordBytes +
                                       database.downloads->hints[0]->size() + kPackFileBytes);
  for (size_t pack = 0; pack < 2; ++pack) {
    const SharedPackingTable& table = database.packing_tables[pack];
    EXPECT_EQ(reinterpret_cast<uintptr_t>(table.get()) % 64, 0u);
    EXPECT_EQ(hash_of_table(table), epoch_.table.packs[pack].table);
    EXPECT_EQ(sha256(*database.downloads->hints[pack]), epoch_.table.packs[pack].mask);
  }
  // Nor does it need the epoch before to answer.
  old_ = {};
  const auto scheduler = scheduler_of(database);
  for (const uint32_t shard : {0u, 3u, 4u}) {
    const auto& [key, value] = pairs_[place_in_shard(pairs_, database.manifest, shard)];
    EXPECT_EQ(ask(database, *scheduler, key, shard), value) << "shard " << shard;
  }
}

TEST_F(ReloadedPacks, ChecksWhatHasChanged) {
  const fs::path pack = pack_file(root_, epoch_.table.packs[1]);
  flip_byte(pack, kPackFileBytes / 2);
  try {
    load_database(root_, support::kPlainEngines, &old_);
    ADD_FAILURE() << "it was not seen";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr(fs::relative(pack, root_).string()));
  }
}

TEST_F(ReloadedPacks, TakesNothingOfAnotherLayout) {
  // As if its masks had been of other numbers.
  old_.manifest.layout.hint_bits ^= 1;
  const LoadedDatabase database = load_database(root_, support::kPlainEngines, &old_);
  EXPECT_EQ(database.reused_bytes, 0u);
  EXPECT_NE(database.packing_tables[0].get(), old_.packing_tables[0].get());
}

}  // namespace
}  // namespace blindfuse::builder_testing
