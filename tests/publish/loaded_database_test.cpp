#include "host/database/loaded_database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <numeric>

#include "host/database/directory.h"
#include "host/engines/engine_factory.h"
#include "src/base/errors.h"
#include "tests/publish/builder_testing.h"
#include "tests/publish/loading_error.h"

namespace blindfuse::builder_testing {
namespace {

using ::testing::HasSubstr;

// Every file that an epoch consists of, damaged in every way, is found out and named.
TEST(LoadedDatabase, NamesAFileThatIsTruncatedAlteredOrMissing) {
  const TemporaryFolder folder;
  BuildOptions options;
  options.shard_count = 2;
  build({{"a", "1"}, {"b", "22"}, {"c", "333"}}, folder / "db", options);
  const auto whole = snapshot(folder / "db");
  int damaged = 0;
  for (const auto& [name, hash] : whole) {
    if (name.ends_with(".lock") || name.starts_with("samples")) continue;  // not served
    const std::filesystem::path path = folder / "db" / name;
    const std::string content = read_whole(path);
    for (const std::string& damage :
         {content.substr(0, content.size() - 3), content + "x", std::string(), [&] {
            std::string flipped = content;
            flipped[flipped.size() / 2] ^= 1;
            return flipped;
          }()}) {
      std::ofstream(path, std::ios::binary) << damage;
      const std::string error = error_of_loading(folder / "db");
      if (name == "manifest.json" && damage == content + "x") {
        EXPECT_THAT(error, HasSubstr("not JSON"));
      } else {
        EXPECT_NE(error, "nothing was thrown") << name << " as " << damage.size() << " bytes";
        EXPECT_THAT(error, HasSubstr(name == "manifest.json" ? "manifest" : name));
      }
      ++damaged;
    }
    std::filesystem::remove(path);
    EXPECT_NE(error_of_loading(folder / "db"), "nothing was thrown") << name;
    std::ofstream(path, std::ios::binary) << content;
    EXPECT_EQ(error_of_loading(folder / "db"), "nothing was thrown") << name;
  }
  EXPECT_EQ(damaged, 6 * 4);  // manifest, table, two matrices, two hints
}

TEST(LoadedDatabase, RefusesAListOfEarlierEpochsThatHoldsSomethingElse) {
  const TemporaryFolder folder;
  build({{"a", "1"}}, folder / "db", {});
  const auto load_with = [&](const std::string& content) {
    std::ofstream(folder / "db/retired.txt") << content;
    return error_of_loading(folder / "db");
  };
  const std::string id(64, 'a');
  EXPECT_EQ(load_with(id + "\n" + id + "\n"), "nothing was thrown");
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
    try {
      load_database(root_, support::kPlainEngines, &old_);
      ADD_FAILURE() << path;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr(path.filename().string()));
    }
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

TEST_F(ReloadedDatabase, ReadsWhatAnEngineDoesNotShare) {
  const auto engines = make_engine_maker("cpu", 1);
  LoadedDatabase database = load_database(root_, *engines, &old_);
  EXPECT_EQ(database.reused_bytes, 3 * database.manifest.layout.hint_part_bytes());
  expect_same_products(*database.engine, *load(root_).engine);
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
    EXPECT_THAT(error.what(), HasSubstr("what is new in the epoch needs 11258"));
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

TEST_F(ReloadedDatabase, TakesNothingOfAnotherLayout) {
  options_.shard_count = 2;
  options_.fresh = true;
  build(pairs_, root_, options_);
  const LoadedDatabase database = load_database(root_, support::kPlainEngines, &old_);
  EXPECT_EQ(database.reused_bytes, 0u);
  for (const auto& [key, value] : pairs_) ASSERT_EQ(look_up(database, key), value);
}

}  // namespace
}  // namespace blindfuse::builder_testing
