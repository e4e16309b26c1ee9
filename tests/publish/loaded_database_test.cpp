#include "host/database/loaded_database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <numeric>

#include "host/database/directory.h"
#include "host/engines/engine_factory.h"
#include "src/base/errors.h"
#include "tests/publish/packed_testing.h"

namespace blindfuse::builder_testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Every file that an epoch of either mode consists of, damaged in every way, is found out and
// named.
TEST(LoadedDatabase, NamesAFileThatIsTruncatedAlteredOrMissing) {
  for (const Mode mode : {Mode::kHint, Mode::kPacked}) {
    const TemporaryFolder folder;
    const fs::path root = folder / "db", good = folder / "good";
    BuildOptions options;
    options.shard_count = 2;
    options.mode = mode;
    build({{"a", "1"}, {"b", "22"}, {"c", "333"}}, root, options);
    int damaged = 0;
    for (const std::string& name : files_in(root)) {
      if (name.ends_with(".lock") || name.starts_with("samples")) continue;  // not served
      const fs::path path = root / name;
      fs::copy_file(path, good, fs::copy_options::overwrite_existing);
      const uint64_t size = fs::file_size(path);
      const std::vector<std::function<void()>> damages = {[&] { fs::resize_file(path, size - 4); },
                                                          [&] { fs::resize_file(path, size + 4); },
                                                          [&] { fs::resize_file(path, 0); },
                                                          [&] { flip_byte(path, 0); },
                                                          [&] { flip_byte(path, size / 2); },
                                                          [&] { flip_byte(path, size - 1); },
                                                          [&] { fs::remove(path); }};
      for (size_t i = 0; i < damages.size(); ++i) {
        SCOPED_TRACE(name + ", damage " + std::to_string(i));
        damages[i]();
        const std::string error = error_of_loading(root);
        EXPECT_NE(error, "");
        if (name != "manifest.json") {
          EXPECT_THAT(error, HasSubstr(name));
        }
        fs::copy_file(good, path, fs::copy_options::overwrite_existing);
      }
      ++damaged;
    }
    EXPECT_EQ(error_of_loading(root), "");
    // Manifest, table, two matrices, and two hints, or a pack with its mask.
    EXPECT_EQ(damaged, 6);
  }
}

TEST(LoadedDatabase, RefusesAListOfEarlierEpochsThatHoldsSomethingElse) {
  const TemporaryFolder folder;
  build({{"a", "1"}}, folder / "db", {});
  const auto load_with = [&](const std::string& content) {
    std::ofstream(folder / "db/retired.txt") << content;
    return error_of_loading(folder / "db");
  };
  const std::string id(64, 'a');
  EXPECT_EQ(load_with(id + "\n" + id + "\n"), "");
  std::string upper = id;
  upper[0] = 'A';
  for (const std::string& line :
       {std::string("hello"), id + "a", id.substr(1), upper, std::string()}) {
    const std::string content = line + "\n" + id + "\n";
    EXPECT_THAT(load_with(content), HasSubstr("retired.txt is altered")) << content;
  }
}

TEST(LoadedDatabase, SaysWhatIsNoDatabase) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of_loading(folder / "missing"), HasSubstr("does not exist"));
  EXPECT_THAT(error_of_loading(folder.path()), HasSubstr("not a database"));
  std::ofstream(folder / "file") << "x";
  EXPECT_THAT(error_of_loading(folder / "file"),
              AllOf(HasSubstr("is a file, not a database"), HasSubstr("`blindfuse build ")));
}

TEST(LoadedDatabase, SaysWhatItMayNotRead) {
  const TemporaryFolder folder;
  build({{"a", "1"}}, folder / "db");
  std::filesystem::permissions(folder / "db", std::filesystem::perms::none);
  // Root may read everything, so root becomes the user `nobody` for a moment.
  constexpr uid_t kNobody = 65534;
  const uid_t self = geteuid();
  std::filesystem::permissions(folder.path(), std::filesystem::perms{0755});
  if (self == 0 && seteuid(kNobody) != 0) GTEST_SKIP() << "root cannot become another user";
  const std::string error = error_of_loading(folder / "db");
  const std::string error_below = error_of_loading(folder / "db" / "below");
  ASSERT_EQ(seteuid(self), 0);
  std::filesystem::permissions(folder / "db", std::filesystem::perms::owner_all);
  EXPECT_THAT(error, HasSubstr("cannot read " + (folder / "db").string()));
  EXPECT_THAT(error, HasSubstr("Permission denied"));
  EXPECT_THAT(error_below, HasSubstr("Permission denied"));
}

// Eight TiB of matrix, of which there is not a single file.
TEST(LoadedDatabase, AsksForAllMemoryBeforeItReadsAnything) {
  const TemporaryFolder folder;
  Manifest manifest;
  Layout& layout = manifest.layout;
  layout.kind = DatabaseKind::kIndex;
  layout.shard_count = 1024;
  layout.row_count = 65'536;
  layout.key_count = uint64_t{layout.shard_count} * layout.row_count;
  layout.arity = 1;
  layout.record = {.digest_bytes = 0, .length_bytes = 0, .value_bytes = kValueBytesMax};
  layout.lwe = find_lwe_params("lwe-1288");
  EpochTable table;
  table.shards.resize(layout.shard_count);
  const std::vector<uint8_t> table_bytes = serialize_epoch_table(table);
  manifest.table = sha256(table_bytes);
  const DatabaseDirectory directory(folder.path());
  std::filesystem::create_directory(directory.tables());
  std::ofstream(directory.tables() / DatabaseDirectory::table_name(manifest.table),
                std::ios::binary)
      .write(reinterpret_cast<const char*>(table_bytes.data()), std::ssize(table_bytes));
  std::ofstream(directory.manifest_file()) << serialize_manifest(manifest);
  try {
    load_database(folder.path(), *make_engine_maker("cpu", 1));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const ResourceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the database needs "));
  }
}

// Four shards, of which a second build changes one.
class ReloadedDatabase : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.shard_count = 4;
    options_.random = fixed_random;
    options_.lwe = find_lwe_params("lwe-1288");
    for (int i = 0; i < 400; ++i) pairs_.emplace_back("key " + std::to_string(i), "value");
    build(pairs_, root_, options_);
    old_ = load(root_);
    pairs_[7].second = "other";
    build(pairs_, root_, options_);
    table_ = load(root_).table.shards;
    for (uint32_t shard = 0; shard < 4; ++shard) {
      if (table_[shard].matrix != old_.table.shards[shard].matrix) changed_.push_back(shard);
    }
    ASSERT_EQ(changed_.size(), 1u);
  }

  std::filesystem::path matrix_file(uint32_t shard) const {
    return root_ / "shards" / DatabaseDirectory::matrix_name(table_[shard].matrix);
  }
  std::filesystem::path hint_file(uint32_t shard) const {
    return root_ / "hints" / DatabaseDirectory::hint_name(table_[shard].hint);
  }

  const TemporaryFolder folder_;
  const std::filesystem::path root_ = folder_ / "db";
  BuildOptions options_;
  Pairs pairs_;
  LoadedDatabase old_;
  ShardTable table_;
  std::vector<uint32_t> changed_;
};

void expect_same_products(Engine& one, Engine& other) {
  const uint64_t rows = one.row_count(), columns = one.column_count();
  std::vector<uint32_t> query(rows), products(columns), others(columns);
  std::iota(query.begin(), query.end(), 0x9abcdef0);
  one.multiply({query.data(), 1, rows}, {0, rows}, {products.data(), 1, columns});
  other.multiply({query.data(), 1, rows}, {0, rows}, {others.data(), 1, columns});
  EXPECT_EQ(products, others);
}

TEST_F(ReloadedDatabase, TakesWhatHasNotChangedFromTheEpochBefore) {
  LoadedDatabase fresh = load(root_);
  EXPECT_EQ(fresh.reused_bytes, 0u);
  for (uint32_t shard = 0; shard < 4; ++shard) {
    if (shard == changed_[0]) continue;
    std::filesystem::remove(matrix_file(shard));
    std::filesystem::remove(hint_file(shard));
  }
  EXPECT_THROW(load(root_), InputError);
  LoadedDatabase database = load_database(root_, support::kPlainEngines, &old_);
  const Layout& layout = database.manifest.layout;
  EXPECT_EQ(database.epoch, fresh.epoch);
  EXPECT_EQ(database.reused_bytes, 3 * (layout.shard_matrix_bytes() + layout.hint_part_bytes()));
  EXPECT_TRUE(support::PlainEngine::in(database).is_sealed());
  for (uint32_t shard = 0; shard < 4; ++shard) {
    EXPECT_EQ(*database.downloads->hints[shard], *fresh.downloads->hints[shard]);
    EXPECT_EQ(database.downloads->hints[shard] == old_.downloads->hints[shard],
              shard != changed_[0])
        << shard;
  }
  expect_same_products(*database.engine, *fresh.engine);
  old_ = {};
  for (const auto& [key, value] : pairs_) ASSERT_EQ(look_up(database, key), value);
}

TEST_F(ReloadedDatabase, ChecksWhatHasChanged) {
  for (const auto& path : {matrix_file(changed_[0]), hint_file(changed_[0])}) {
    const std::string content = read_whole(path);
    std::string flipped = content;
    flipped[flipped.size() / 2] ^= 1;
    std::ofstream(path, std::ios::binary) << flipped;
    EXPECT_THAT(error_of_loading(root_, &old_), HasSubstr(path.filename().string()));
    std::ofstream(path, std::ios::binary) << content;
  }
}

TEST_F(ReloadedDatabase, IsTheSameOnTheProcessor) {
  const auto engines = make_engine_maker("cpu", 2);
  LoadedDatabase fresh = load_database(root_, *engines);
  for (uint32_t shard = 0; shard < 4; ++shard) {
    if (shard != changed_[0]) std::filesystem::remove(matrix_file(shard));
  }
  LoadedDatabase same = load_database(root_, *engines, &fresh);
  EXPECT_EQ(same.reused_bytes,
            same.manifest.layout.matrix_bytes() + same.manifest.layout.hint_bytes());
  fresh.engine = {};
  LoadedDatabase again = load_database(root_, *engines, &same);
  expect_same_products(*again.engine, *same.engine);
  // Engines of different kinds have nothing to share, but hints are hints.
  EXPECT_THROW(load_database(root_, *engines, &old_), InputError);
}

// An engine whose matrix is larger than any machine once columns of it are copied.
class CopyingEngine final : public support::PlainEngine {
 public:
  using PlainEngine::PlainEngine;
  uint64_t host_bytes(std::span<const ColumnRange> shared, const Engine* other) const override {
    EXPECT_NE(other, nullptr);
    EXPECT_FALSE(shared.empty());
    return uint64_t{1} << 50;
  }
  bool share_columns(uint64_t, uint64_t, const Engine&) override {
    ADD_FAILURE() << "there is no memory for a copy";
    return false;
  }
};

class CopyingEngineMaker final : public support::PlainEngineMaker {
 public:
  std::unique_ptr<Engine> make_engine(uint64_t rows, uint64_t columns) const override {
    return std::make_unique<CopyingEngine>(rows, columns);
  }
};

TEST_F(ReloadedDatabase, AsksForMemoryBeforeItCopies) {
  try {
    load_database(root_, CopyingEngineMaker(), &old_);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const ResourceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the new part of the epoch needs 11258"));
  }
}

// Notes what it is to have room for.
class NotingEngineMaker final : public support::PlainEngineMaker {
 public:
  std::unique_ptr<Engine> make_serving_engine(uint64_t rows, uint64_t columns,
                                              const ServingNeeds& needs) const override {
    noted = needs;
    return make_engine(rows, columns);
  }

  mutable ServingNeeds noted{0, 99};
};

TEST_F(ReloadedDatabase, SaysWhatTheEngineWillServe) {
  const NotingEngineMaker engines;
  load_database(
      root_, engines, nullptr, [] {}, 77);
  EXPECT_EQ(engines.noted.batch_max, 77u);
  EXPECT_EQ(engines.noted.pack_count, 0u) << "of the mode hint";
  options_.lwe = find_lwe_params("ring-2048");
  options_.fresh = true;
  build(pairs_, root_, options_);
  const LoadedDatabase packed = load_database(
      root_, engines, nullptr, [] {}, 5);
  EXPECT_EQ(engines.noted.batch_max, 5u);
  EXPECT_EQ(engines.noted.pack_count, packed.packing_tables.size());
  EXPECT_EQ(engines.noted.bucket_count, 1u);
  EXPECT_GE(engines.noted.pack_count, 1u);
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
  EXPECT_NE(error_of_loading(root_), "");
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
  EXPECT_THAT(error_of_loading(root_, &old_), HasSubstr(fs::relative(pack, root_).string()));
}

TEST_F(ReloadedPacks, TakesNothingOfAnotherLayout) {
  // As if its masks had been of other numbers.
  old_.manifest.layout.hint_bits ^= 1;
  const LoadedDatabase database = load_database(root_, support::kPlainEngines, &old_);
  EXPECT_EQ(database.reused_bytes, 0u);
  EXPECT_NE(database.packing_tables[0].get(), old_.packing_tables[0].get());
}

TEST_F(ReloadedDatabase, ReadsWhatAnEngineDoesNotShare) {
  const auto engines = make_engine_maker("cpu", 1);
  LoadedDatabase database = load_database(root_, *engines, &old_);
  EXPECT_EQ(database.reused_bytes, 3 * database.manifest.layout.hint_part_bytes());
  expect_same_products(*database.engine, *load(root_).engine);
}

}  // namespace
}  // namespace blindfuse::builder_testing
