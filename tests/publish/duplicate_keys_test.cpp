// A build whose input has a key more than once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/publish/builder_testing.h"
#include "tests/support.h"

namespace blindfuse::builder_testing {
namespace {

using support::input_error_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(DuplicateKeys, NamesBothPlacesOfADuplicate) {
  const TemporaryFolder folder;
  Pairs pairs;
  for (int i = 0; i < 5000; ++i) pairs.emplace_back("key " + std::to_string(i), "value");
  pairs.emplace_back("key 4711", "again");
  pairs.emplace_back("key 17", "again");
  EXPECT_THAT(
      input_error_of([&] { build(pairs, folder / "db"); }),
      AllOf(HasSubstr("the key \"key 4711\" comes twice: memory, line 4712 and memory, line "
                      "5001 (and 1 more)"),
            HasSubstr("--on-duplicate")));
  EXPECT_FALSE(std::filesystem::exists(folder / "db"));
}

TEST(DuplicateKeys, KeepsTheFirstOrTheLastDuplicate) {
  const TemporaryFolder folder;
  const Pairs pairs = {{"a", "1"}, {"b", "2"}, {"a", "3"}, {"c", "4"}, {"a", "5"}};
  BuildOptions options;
  options.input.on_duplicate = DuplicatePolicy::kFirst;
  BuildReport report = build(pairs, folder / "first", options);
  EXPECT_EQ(report.survey.duplicates_dropped, 2u);
  EXPECT_EQ(look_up(load(folder / "first"), "a"), "1");
  options.input.on_duplicate = DuplicatePolicy::kLast;
  report = build(pairs, folder / "last", options);
  EXPECT_EQ(report.layout.key_count, 3u);
  EXPECT_EQ(look_up(load(folder / "last"), "a"), "5");
}

// More pairs than the spool keeps in memory, and every place in one input or the other.
TEST(DuplicateKeys, KeepsTheFirstOrTheLastOfManyDuplicatesInSeveralInputs) {
  const TemporaryFolder folder;
  std::map<std::string, std::string> first;
  std::map<std::string, std::string> last;
  const auto made = [&](const std::string& name) {
    Pairs pairs;
    for (int i = 0; i < 20'000; ++i) {
      const std::string key = i % 2 == 0 ? "hot" : "key " + std::to_string(i * 7 % 301);
      pairs.emplace_back(key, name + std::to_string(i));
      first.try_emplace(key, pairs.back().second);
      last[key] = pairs.back().second;
    }
    return pairs;
  };
  const Pairs one = made("one");
  const Pairs two = made("two");
  for (const auto policy : {DuplicatePolicy::kFirst, DuplicatePolicy::kLast}) {
    std::vector<std::unique_ptr<KeyValueSource>> sources;
    sources.push_back(std::make_unique<MemorySource>(one, "one"));
    sources.push_back(std::make_unique<MemorySource>(two, "two"));
    BuildOptions options;
    options.shard_count = 3;
    options.input.on_duplicate = policy;
    std::filesystem::remove_all(folder / "db");
    const BuildReport report = build_database(sources, folder / "db", options);
    EXPECT_EQ(report.layout.key_count, first.size());
    EXPECT_EQ(report.survey.duplicates_dropped, 40'000 - first.size());
    const LoadedDatabase database = load(folder / "db");
    for (const auto& [key, value] : policy == DuplicatePolicy::kFirst ? first : last) {
      ASSERT_EQ(look_up(database, key), value) << key;
    }
  }
}

// What comes first is the first input's, on whatever line.
TEST(DuplicateKeys, InputsComeInTheirOrder) {
  const TemporaryFolder folder;
  const auto build_with = [&](DuplicatePolicy policy) {
    std::vector<std::unique_ptr<KeyValueSource>> sources;
    sources.push_back(std::make_unique<MemorySource>(
        Pairs{{"x", ""}, {"y", ""}, {"z", ""}, {"a", "early"}}, "one"));
    sources.push_back(std::make_unique<MemorySource>(Pairs{{"a", "late"}, {"b", ""}}, "two"));
    BuildOptions options;
    options.input.on_duplicate = policy;
    return build_database(sources, folder / "db", options);
  };
  EXPECT_THAT(input_error_of([&] { build_with(DuplicatePolicy::kError); }),
              HasSubstr("the key \"a\" comes twice: one, line 4 and two, line 1;"));
  build_with(DuplicatePolicy::kFirst);
  EXPECT_EQ(look_up(load(folder / "db"), "a"), "early");
  build_with(DuplicatePolicy::kLast);
  EXPECT_EQ(look_up(load(folder / "db"), "a"), "late");
}

// Of two duplicates, the one that a reader of the inputs meets first.
TEST(DuplicateKeys, NamesTheDuplicateOfTheEarlierInput) {
  const TemporaryFolder folder;
  std::vector<std::unique_ptr<KeyValueSource>> sources;
  sources.push_back(
      std::make_unique<MemorySource>(Pairs{{"a", ""}, {"b", ""}, {"x", ""}, {"a", ""}}, "one"));
  sources.push_back(std::make_unique<MemorySource>(Pairs{{"b", ""}, {"c", ""}}, "two"));
  EXPECT_THAT(input_error_of([&] { build_database(sources, folder / "db", {}); }),
              HasSubstr("the key \"a\" comes twice: one, line 1 and one, line 4 (and 1 more);"));
}

// A key comes so often that reading ends early; the earliest duplicate is of another one.
TEST(DuplicateKeys, NamesTheFirstDuplicateOfManyWithoutReadingOn) {
  const TemporaryFolder folder;
  Pairs pairs = {{"early", ""}, {"hot", ""}, {"early", ""}};
  for (int i = 0; i < 5'000; ++i) pairs.emplace_back("hot", "");
  std::vector<std::unique_ptr<KeyValueSource>> sources;
  sources.push_back(std::make_unique<MemorySource>(pairs));
  EXPECT_THAT(
      input_error_of([&] { build_database(sources, folder / "db", {}); }),
      AllOf(HasSubstr("the key \"early\" comes twice: memory, line 1 and memory, line 3 (and at "
                      "least "),
            HasSubstr(" more)")));
  EXPECT_LT(sources[0]->bytes_read(), 1'000u);
}

TEST(DuplicateKeys, ShowsAKeyThatComesTwiceOnOneLine) {
  const TemporaryFolder folder;
  const std::string key = "\x1b[31m\n" + std::string(60'000, 'k');
  EXPECT_THAT(input_error_of([&] {
                build({{key, "1"}, {key, "2"}}, folder / "db");
              }),
              AllOf(StartsWith("the key \"\\x1b[31m\\x0akkk"), HasSubstr("kkk...\" comes twice")));
}

TEST(DuplicateKeys, ShowsAKeyAsTheInputHasIt) {
  const TemporaryFolder folder;
  for (const auto& [encoding, text] :
       {std::pair(TextEncoding::kHex, "\"00ff\""), {TextEncoding::kBase64, "\"AP8=\""}}) {
    BuildOptions options;
    options.input.key_encoding = encoding;
    const std::string key("\0\xff", 2);
    EXPECT_THAT(input_error_of([&] {
                  build({{key, "1"}, {key, "2"}}, folder / "db", options);
                }),
                StartsWith("the key " + std::string(text) + " comes twice"));
  }
}

}  // namespace
}  // namespace blindfuse::builder_testing
