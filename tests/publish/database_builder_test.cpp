#include "host/publish/database_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "host/database/build_journal.h"
#include "host/database/directory.h"
#include "host/engines/engine_factory.h"
#include "host/hint/hint.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/base/errors.h"
#include "src/system/file.h"
#include "tests/publish/builder_testing.h"

namespace blindfuse::builder_testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Pairs made_pairs(size_t count, size_t longest_value, uint32_t seed) {
  std::mt19937 random(seed);
  Pairs pairs;
  for (size_t i = 0; i < count; ++i) {
    std::string value(random() % (longest_value + 1), '\0');
    for (char& c : value) c = static_cast<char>(random());
    pairs.emplace_back("key " + std::to_string(i), value);
  }
  pairs.front().second.assign(longest_value, 'x');  // the longest is what was asked for
  return pairs;
}

BuildOptions options_with_shards(uint32_t shards) {
  BuildOptions options;
  options.shard_count = shards;
  options.random = fixed_random;
  options.lwe = find_lwe_params("lwe-1288");  // the quickest
  return options;
}

struct Shape {
  uint32_t arity;
  uint32_t shards;
  size_t keys;
  size_t longest_value;
};

void PrintTo(const Shape& shape, std::ostream* out) {
  *out << "arity " << shape.arity << ", " << shape.shards << " shards, " << shape.keys
       << " keys, values up to " << shape.longest_value << " bytes";
}

class EveryShape : public ::testing::TestWithParam<Shape> {};

TEST_P(EveryShape, AnswersEveryKeyAndNoOther) {
  const TemporaryFolder folder;
  const Pairs pairs = made_pairs(GetParam().keys, GetParam().longest_value, 1);
  BuildOptions options = options_with_shards(GetParam().shards);
  options.arity = GetParam().arity;
  const BuildReport report = build(pairs, folder / "db", options);
  EXPECT_EQ(report.shards_rebuilt, GetParam().shards);
  const LoadedDatabase database = load(folder / "db");
  EXPECT_EQ(database.epoch, report.epoch);
  EXPECT_EQ(database.manifest.layout.key_count, pairs.size());
  for (const auto& [key, value] : pairs) ASSERT_EQ(look_up(database, key), value) << key;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(look_up(database, "absent " + std::to_string(i)), std::nullopt);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, EveryShape,
                         ::testing::Values(Shape{3, 1, 1, 0}, Shape{3, 1, 2, 5},
                                           Shape{3, 1, 3000, 20}, Shape{4, 1, 3000, 20},
                                           Shape{3, 7, 3000, 300}, Shape{4, 7, 3000, 63},
                                           Shape{3, 64, 3000, 1}, Shape{3, 400, 4000, 3},
                                           Shape{4, 2, 20, 20'000}));

TEST(DatabaseBuilder, TakesTheLongestKeysAndValues) {
  const TemporaryFolder folder;
  const Pairs pairs = {{std::string(65'536, 'k'), std::string(131'072, 'v')}, {"", "empty key"}};
  build(pairs, folder / "db", options_with_shards(1));
  const LoadedDatabase database = load(folder / "db");
  for (const auto& [key, value] : pairs) EXPECT_EQ(look_up(database, key), value);
}

// More columns than one pass over the public matrix takes, and more bytes of them than are read at
// a time: the hint must be that of the whole matrix at once.
TEST(DatabaseBuilder, MakesTheHintsOfLongRecordsInParts) {
  const TemporaryFolder folder;
  build(made_pairs(2'000, 9'000, 11), folder / "db", options_with_shards(1));
  const LoadedDatabase database = load(folder / "db");
  const Layout& layout = database.manifest.layout;
  ASSERT_GT(layout.record_bytes(), 8192u);
  ASSERT_GT(layout.matrix_bytes(), 16u << 20);
  const auto engine = make_engine("auto", layout.row_count, layout.column_count(), 2);
  const auto& matrix = support::PlainEngine::in(database);
  std::vector<uint8_t> column(layout.row_count);
  for (uint64_t c = 0; c < layout.column_count(); ++c) {
    for (uint64_t r = 0; r < column.size(); ++r) column[r] = static_cast<uint8_t>(matrix.at(r, c));
    engine->set_columns(c, column);
  }
  engine->seal();
  WorkerThreads threads(2);
  std::vector<uint32_t> words(layout.column_count() * layout.lwe->dimension);
  compute_hint(PublicMatrix(database.manifest.seed, layout.lwe->dimension), *engine, threads, words,
               [](uint64_t) {});
  std::vector<uint8_t> packed(layout.hint_bytes());
  write_bit_sequence(words, layout.hint_bits, packed);
  EXPECT_TRUE(packed == *database.downloads->hints.at(0));
}

TEST(DatabaseBuilder, DoesNotDependOnTheOrderOfTheInputAndBuildsTheSameWithoutWork) {
  const TemporaryFolder folder;
  Pairs pairs = made_pairs(2000, 30, 2);
  const BuildReport first = build(pairs, folder / "a", options_with_shards(3));
  const auto before = snapshot(folder / "a");
  std::shuffle(pairs.begin(), pairs.end(), std::mt19937(3));
  EXPECT_EQ(build(pairs, folder / "b", options_with_shards(3)).epoch, first.epoch);
  EXPECT_EQ(snapshot(folder / "b"), before);
  const BuildReport again = build(pairs, folder / "a");
  EXPECT_EQ(again.shards_rebuilt, 0u);
  EXPECT_FALSE(again.changed);
  EXPECT_EQ(again.epoch, first.epoch);
  EXPECT_EQ(snapshot(folder / "a"), before);
  // What is damaged is made again.
  const DatabaseDirectory directory(folder / "a");
  const ShardTable table = load(folder / "a").table.shards;
  std::filesystem::remove(directory.hints() / DatabaseDirectory::hint_name(table[1].hint));
  std::filesystem::resize_file(directory.shards() / DatabaseDirectory::matrix_name(table[2].matrix),
                               10);
  const BuildReport healed = build(pairs, folder / "a");
  EXPECT_EQ(healed.shards_rebuilt, 2u);
  EXPECT_FALSE(healed.changed);
  EXPECT_EQ(snapshot(folder / "a"), before);
}

TEST(DatabaseBuilder, RebuildsOnlyTheShardsThatChanged) {
  const TemporaryFolder folder;
  Pairs pairs = made_pairs(1000, 10, 5);
  build(pairs, folder / "db", options_with_shards(16));
  const LoadedDatabase before = load(folder / "db");

  pairs[7].second = "new";
  EXPECT_EQ(build(pairs, folder / "db").shards_rebuilt, 1u) << "a value changed";
  pairs.emplace_back("one more", "value");
  EXPECT_EQ(build(pairs, folder / "db").shards_rebuilt, 1u) << "a key came";
  pairs.erase(pairs.begin() + 3);
  const BuildReport report = build(pairs, folder / "db");
  EXPECT_EQ(report.shards_rebuilt, 1u) << "a key went";

  const LoadedDatabase after = load(folder / "db");
  EXPECT_EQ(after.manifest.salt, before.manifest.salt);
  EXPECT_EQ(after.manifest.seed, before.manifest.seed);
  EXPECT_EQ(after.manifest.layout.row_count, before.manifest.layout.row_count);
  EXPECT_EQ(after.manifest.layout.shard_count, before.manifest.layout.shard_count);
  for (const auto& [key, value] : pairs) ASSERT_EQ(look_up(after, key), value);
  EXPECT_EQ(look_up(after, "key 3"), std::nullopt);
  EXPECT_EQ(after.retired.size(), 3u);
  EXPECT_EQ(after.retired.front(), before.epoch);
}

TEST(DatabaseBuilder, IncrementalBuildsEqualFullOnes) {
  std::mt19937 random(6);
  const TemporaryFolder folder;
  Pairs pairs = made_pairs(2000, 12, 6);
  build(pairs, folder / "incremental", options_with_shards(8));
  for (int round = 0; round < 5; ++round) {
    for (int change = 0; change < 3; ++change) {
      const size_t i = 1 + random() % (pairs.size() - 1);
      pairs[i] = {"round " + std::to_string(round) + " " + std::to_string(change), "changed"};
    }
    const BuildReport incremental = build(pairs, folder / "incremental", options_with_shards(8));
    std::filesystem::remove_all(folder / "full");
    const BuildReport full = build(pairs, folder / "full", options_with_shards(8));
    ASSERT_LT(incremental.shards_rebuilt, 8u);
    ASSERT_EQ(full.shards_rebuilt, 8u);
    ASSERT_EQ(incremental.epoch, full.epoch);
    auto incremental_files = snapshot(folder / "incremental");
    incremental_files.erase("retired.txt");  // a history that the full build does not have
    ASSERT_EQ(incremental_files, snapshot(folder / "full"));
  }
}

TEST(DatabaseBuilder, StartsAnewWhenTheLayoutNoLongerFits) {
  const TemporaryFolder folder;
  Pairs pairs = made_pairs(300, 10, 7);
  build(pairs, folder / "db", options_with_shards(4));

  pairs[0].second = std::string(11, 'y');
  BuildReport report = build(pairs, folder / "db");
  EXPECT_EQ(report.shards_rebuilt, report.layout.shard_count);
  EXPECT_THAT(report.layout_reason, HasSubstr("up to 11 bytes"));

  for (int i = 0; i < 3000; ++i) pairs.emplace_back("more " + std::to_string(i), "z");
  report = build(pairs, folder / "db");
  EXPECT_EQ(report.shards_rebuilt, report.layout.shard_count);
  EXPECT_THAT(report.layout_reason, HasSubstr("rows hold"));
  const LoadedDatabase database = load(folder / "db");
  for (const auto& [key, value] : pairs) ASSERT_EQ(look_up(database, key), value);
}

// With room that was asked for, a longer value rebuilds its shard alone. Values of one length have
// no field for it; with room for longer ones they do.
TEST(DatabaseBuilder, KeepsTheLayoutWhileValuesFitIntoTheRoom) {
  const TemporaryFolder folder;
  Pairs pairs = numbered_pairs(300, "0123456789");
  BuildOptions roomy = options_with_shards(4);
  roomy.value_room = 16;
  const BuildReport first = build(pairs, folder / "db", roomy);
  EXPECT_EQ(first.layout.record.value_bytes, 16u);
  EXPECT_EQ(first.layout.record.length_bytes, 1u);

  pairs[0].second = std::string(16, 'y');
  BuildReport report = build(pairs, folder / "db");
  EXPECT_TRUE(report.layout_kept) << report.layout_reason;
  EXPECT_EQ(report.shards_rebuilt, 1u);
  pairs[1].second = std::string(17, 'z');
  report = build(pairs, folder / "db", roomy);
  EXPECT_FALSE(report.layout_kept);
  EXPECT_EQ(report.layout.record.value_bytes, 17u);

  BuildOptions roomier = options_with_shards(4);
  roomier.value_room = 18;
  report = build(pairs, folder / "db", roomier);
  EXPECT_FALSE(report.layout_kept);
  EXPECT_THAT(report.layout_reason,
              HasSubstr("room for values of 18 bytes is wanted, and there was 17"));
  const LoadedDatabase database = load(folder / "db");
  for (const auto& [key, value] : pairs) ASSERT_EQ(look_up(database, key), value);
}

TEST(DatabaseBuilder, FreshPicksANewSaltAndSeed) {
  const TemporaryFolder folder;
  const Pairs pairs = made_pairs(50, 10, 8);
  build(pairs, folder / "db");
  const Manifest before = load(folder / "db").manifest;
  BuildOptions options;
  options.fresh = true;
  const BuildReport report = build(pairs, folder / "db", options);
  const Manifest after = load(folder / "db").manifest;
  EXPECT_TRUE(report.changed);
  EXPECT_NE(after.salt, before.salt);
  EXPECT_NE(after.seed, before.seed);
}

// All shards change, and none may get a seed that was published, unless its input is what it was.
TEST(DatabaseBuilder, DrawsNewFilterSeedsForShardsThatChange) {
  const TemporaryFolder folder;
  Pairs pairs = made_pairs(800, 5, 15);
  const auto seeds = [&] {
    std::vector<uint64_t> found;
    for (const ShardEntry& entry : load(folder / "db").table.shards) {
      found.push_back(entry.filter_seed);
    }
    return found;
  };
  BuildOptions options = options_with_shards(8);
  options.random = fill_from_system;
  build(pairs, folder / "db", options);
  const std::vector<uint64_t> first = seeds();
  for (const uint64_t seed : first) EXPECT_GE(seed, uint64_t{1} << 20) << "that is no chance";
  EXPECT_EQ(std::set<uint64_t>(first.begin(), first.end()).size(), 8u);
  build(pairs, folder / "db");
  EXPECT_EQ(seeds(), first);
  for (auto& [key, value] : pairs) std::ranges::reverse(value);
  EXPECT_EQ(build(pairs, folder / "db").shards_rebuilt, 8u);
  const std::vector<uint64_t> second = seeds();
  for (size_t shard = 0; shard < 8; ++shard) EXPECT_NE(second[shard], first[shard]);
}

TEST(DatabaseBuilder, RefusesOrCutsLongValues) {
  const TemporaryFolder folder;
  const Pairs pairs = {{"a", "short"},
                       {"b",
                        "gr\xc3\xbc\xc3\x9f"
                        "e"}};
  BuildOptions options;
  options.input.value_bytes_max = 5;
  EXPECT_THAT(build_refusal(pairs, folder / "db", options),
              AllOf(HasSubstr("memory, line 2"), HasSubstr("7 bytes"), HasSubstr("at most 5")));
  options.input.long_values = LongValues::kTruncate;
  EXPECT_EQ(build(pairs, folder / "text", options).truncated_values, 1u);
  EXPECT_EQ(look_up(load(folder / "text"), "b"), "gr\xc3\xbc") << "a character is whole";
  options.input.values_are_text = false;
  build(pairs, folder / "bytes", options);
  EXPECT_EQ(look_up(load(folder / "bytes"), "b"), "gr\xc3\xbc\xc3");
}

TEST(DatabaseBuilder, LeavesAFolderOfSomebodyElseAlone) {
  const TemporaryFolder folder;
  std::ofstream(folder / "letter.txt") << "dear";
  EXPECT_THAT(build_refusal({{"a", "b"}}, folder.path()),
              AllOf(HasSubstr("not a database"), HasSubstr("letter.txt")));
  EXPECT_EQ(snapshot(folder.path()).size(), 1u);
}

TEST(DatabaseBuilder, RefusesASecondBuildInTheSameDirectory) {
  const TemporaryFolder folder;
  build({{"a", "b"}}, folder / "db");
  const auto lock = try_lock(DatabaseDirectory(folder / "db").lock_file());
  ASSERT_TRUE(lock);
  const auto before = snapshot(folder / "db");
  EXPECT_THAT(build_refusal({{"a", "c"}}, folder / "db"), HasSubstr("another build"));
  EXPECT_EQ(snapshot(folder / "db"), before);
}

// A source that fails in the middle.
class BrokenSource final : public KeyValueSource {
 public:
  bool next(KeyValuePair& pair) override {
    pair.key = pair.value = "x";
    if (++pairs_ == 2) throw InputError("broken, line 2: no tab");
    return true;
  }
  const std::string& name() const override { return name_; }
  std::string_view place_unit() const override { return "line"; }
  uint64_t bytes_read() const override { return 0; }
  std::optional<uint64_t> bytes_total() const override { return std::nullopt; }

 private:
  int pairs_ = 0;
  const std::string name_ = "broken";
};

TEST(DatabaseBuilder, ChangesNothingWhenItFails) {
  const TemporaryFolder folder;
  build(made_pairs(100, 10, 12), folder / "db");
  const auto before = snapshot(folder / "db");
  std::vector<std::unique_ptr<KeyValueSource>> sources;
  sources.push_back(std::make_unique<BrokenSource>());
  EXPECT_THROW(build_database(sources, folder / "db", {}), InputError);
  EXPECT_EQ(snapshot(folder / "db"), before);
  BuildOptions options;
  options.fresh = true;
  options.on_planned = [&](const BuildReport&) {
    // The folder of the hints is not there when they are to be written, after all filters were.
    std::filesystem::rename(folder / "db" / "hints", folder / "hints");
    std::ofstream(folder / "db" / "hints") << "in the way";
  };
  EXPECT_ANY_THROW(build(made_pairs(100, 10, 13), folder / "db", options));
  std::filesystem::remove(folder / "db" / "hints");
  std::filesystem::rename(folder / "hints", folder / "db" / "hints");
  EXPECT_EQ(snapshot(folder / "db"), before);
}

// As it is when the last step of publishing, after the manifest has its place, fails.
TEST(DatabaseBuilder, DeletesNothingOfAnEpochThatItDidNotKeep) {
  const TemporaryFolder folder;
  Pairs pairs = made_pairs(100, 10, 17);
  build(pairs, folder / "db");
  std::filesystem::copy(folder / "db", folder / "newer", std::filesystem::copy_options::recursive);
  pairs[1].second = "newer";
  build(pairs, folder / "newer");
  BuildOptions options;
  options.on_planned = [&](const BuildReport&) {
    std::filesystem::copy(folder / "newer", folder / "db",
                          std::filesystem::copy_options::recursive |
                              std::filesystem::copy_options::overwrite_existing);
    throw ResourceError("the folder cannot be synced");
  };
  EXPECT_THROW(build(pairs, folder / "db", options), ResourceError);
  EXPECT_EQ(look_up(load(folder / "db"), "key 1"), "newer");
}

TEST(DatabaseBuilder, ClearsAwayAtItsBeginningWhatAKilledBuildLeft) {
  const TemporaryFolder folder;
  const Pairs pairs = made_pairs(100, 10, 18);
  build(pairs, folder / "db");
  std::filesystem::create_directory(folder / "db" / "packs");
  const std::string content(64, 'a');
  const std::vector<std::string> names = {"shards/" + content + ".matrix",
                                          "hints/" + content + ".hint",
                                          "packs/" + content + ".pack", temporary_name()};
  const auto count_left = [&] {
    return std::ranges::count_if(
        names, [&](const auto& name) { return std::filesystem::exists(folder / "db" / name); });
  };
  const auto leave_all = [&] {
    const OpenFolder root(folder / "db");
    BuildJournal journal(root);
    journal.add_pending(names.back());
    for (const std::string& name : names) {
      const std::filesystem::path path = folder / "db" / name;
      std::ofstream(path) << "left";
      if (name != names.back()) {
        journal.add_file(name, identity_of(open_for_reading(path), path));
      }
    }
  };
  std::optional<long> seen;
  BuildOptions options;
  options.on_planned = [&](const BuildReport&) { seen = count_left(); };

  leave_all();
  build(pairs, folder / "db", options);
  EXPECT_EQ(seen, 0);

  // What an epoch that cannot be read refers to is not known; temporary files are not among it.
  leave_all();
  std::filesystem::resize_file(folder / "db" / "manifest.json", 100);
  options.fresh = true;
  build(pairs, folder / "db", options);
  EXPECT_EQ(seen, std::ssize(names) - 1);
  EXPECT_EQ(count_left(), 0);
  EXPECT_FALSE(std::filesystem::exists(folder / "db" / ".build-journal"));
}

TEST(DatabaseBuilder, DoesNotTouchADamagedDatabaseUnlessFresh) {
  const TemporaryFolder folder;
  const Pairs pairs = made_pairs(100, 10, 14);
  build(pairs, folder / "db");
  std::filesystem::resize_file(folder / "db" / "manifest.json", 100);
  const auto before = snapshot(folder / "db");
  EXPECT_THAT(build_refusal(pairs, folder / "db"),
              AllOf(HasSubstr("cannot read"), HasSubstr("--fresh")));
  EXPECT_EQ(snapshot(folder / "db"), before);
  BuildOptions options;
  options.fresh = true;
  build(pairs, folder / "db", options);
  EXPECT_EQ(look_up(load(folder / "db"), "key 1"), pairs[1].second);
}

TEST(DatabaseBuilder, BuildsIndexDatabases) {
  const TemporaryFolder folder;
  Pairs pairs = made_pairs(5000, 9, 15);
  BuildOptions options = options_with_shards(7);
  options.input.kind = DatabaseKind::kIndex;
  BuildReport report = build(pairs, folder / "db", options);
  EXPECT_EQ(report.layout.row_count, 768u);  // 5000 / 7 = 714.3, up to a multiple of 64
  LoadedDatabase database = load(folder / "db");
  for (size_t i = 0; i < pairs.size(); ++i) {
    ASSERT_EQ(look_up(database, uint64_t{i}), pairs[i].second);
  }
  pairs[4321].second = "other";
  options.shard_count.reset();
  report = build(pairs, folder / "db", options);
  EXPECT_EQ(report.shards_rebuilt, 1u);
  database = load(folder / "db");
  EXPECT_EQ(look_up(database, uint64_t{4321}), "other");
}

}  // namespace
}  // namespace blindfuse::builder_testing
