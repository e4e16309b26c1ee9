// A build whose input has a key more than once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "tests/publish/builder_testing.h"

namespace blindfuse::builder_testing {
namespace {

using support::input_error_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

using Inputs = std::vector<std::pair<std::string, Pairs>>;

std::vector<std::unique_ptr<KeyValueSource>> sources_of(const Inputs& inputs) {
  std::vector<std::unique_ptr<KeyValueSource>> sources;
  for (const auto& [name, pairs] : inputs) {
    sources.push_back(std::make_unique<MemorySource>(pairs, name));
  }
  return sources;
}

// Of several, the one that a reader of the inputs meets first; on one line, and as the input has
// it.
TEST(DuplicateKeys, NamesBothPlacesOfADuplicate) {
  const TemporaryFolder folder;
  Pairs many = numbered_pairs(5000);
  many.emplace_back("key 4711", "again");
  many.emplace_back("key 17", "again");
  const std::string wild = "\x1b[31m\n" + std::string(60'000, 'k'), bytes("\0\xff", 2);
  const std::vector<std::tuple<Inputs, TextEncoding, std::string>> cases = {
      {{{"memory", many}},
       TextEncoding::kUtf8,
       "the key \"key 4711\" comes twice: memory, line 4712 and memory, line 5001 (and 1 more);"},
      {{{"one", {{"x", ""}, {"y", ""}, {"a", "early"}}}, {"two", {{"a", "late"}, {"b", ""}}}},
       TextEncoding::kUtf8,
       "the key \"a\" comes twice: one, line 3 and two, line 1;"},
      {{{"one", {{"a", ""}, {"b", ""}, {"x", ""}, {"a", ""}}}, {"two", {{"b", ""}, {"c", ""}}}},
       TextEncoding::kUtf8,
       "the key \"a\" comes twice: one, line 1 and one, line 4 (and 1 more);"},
      {{{"m", {{wild, ""}, {wild, ""}}}}, TextEncoding::kUtf8, "the key \"\\x1b[31m\\x0akkk"},
      {{{"m", {{wild, ""}, {wild, ""}}}}, TextEncoding::kUtf8, "kkk...\" comes twice"},
      {{{"m", {{bytes, ""}, {bytes, ""}}}}, TextEncoding::kHex, "the key \"00ff\" comes twice"},
      {{{"m", {{bytes, ""}, {bytes, ""}}}}, TextEncoding::kBase64, "the key \"AP8=\" comes twice"},
      {{{"m", {{"a", ""}, {"a", ""}}}}, TextEncoding::kUtf8, "--on-duplicate"},
  };
  for (const auto& [inputs, encoding, message] : cases) {
    const auto sources = sources_of(inputs);
    BuildOptions options;
    options.input.key_encoding = encoding;
    EXPECT_THAT(input_error_of([&] { build_database(sources, folder / "db", options); }),
                HasSubstr(message));
    EXPECT_FALSE(std::filesystem::exists(folder / "db"));
  }
}

// A key comes so often that reading ends early; the earliest duplicate is of another one.
TEST(DuplicateKeys, NamesTheFirstDuplicateOfManyWithoutReadingOn) {
  const TemporaryFolder folder;
  Pairs pairs = {{"early", ""}, {"hot", ""}, {"early", ""}};
  pairs.resize(5'000, {"hot", ""});
  const auto sources = sources_of({{"memory", pairs}});
  EXPECT_THAT(
      input_error_of([&] { build_database(sources, folder / "db", {}); }),
      AllOf(HasSubstr("the key \"early\" comes twice: memory, line 1 and memory, line 3 (and at "
                      "least "),
            HasSubstr(" more)")));
  EXPECT_LT(sources[0]->bytes_read(), 1'000u);
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
    const auto sources = sources_of({{"one", one}, {"two", two}});
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

}  // namespace
}  // namespace blindfuse::builder_testing
