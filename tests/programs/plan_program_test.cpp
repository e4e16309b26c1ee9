// What `blindfuse plan` and `build --dry-run` say of the server, and of pairs that are there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/programs/program_testing.h"

namespace blindfuse::program_testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string three_thousand_pairs() {
  std::string lines;
  for (int i = 0; i < 3000; ++i) lines += "k" + std::to_string(i) + "\t12345678\n";
  return lines;
}

Words plan_command(const Words& more) { return Words{kBlindfuse, "plan"} + more; }

// The plan without what this machine's rates determine.
json plan_of(const TemporaryFolder& folder, const Words& more) {
  const ProgramResult result = run(folder, plan_command(more + Words{"--json"}));
  EXPECT_EQ(result.status, 0) << result.err;
  json best = json::parse(result.out).at("recommended");
  for (const char* time : {"alone_milliseconds", "batch_milliseconds", "lookups_per_core_second"}) {
    EXPECT_GT(best.at(time), 0);
    best.erase(time);
  }
  return best;
}

// The options that are shown make build take the same layout.
TEST(PlanCommand, SaysHowToChooseALayout) {
  const TemporaryFolder folder;
  for (const Words& sizes :
       {Words{"--keys", "1M", "--value-bytes", "256"},
        {"--keys", "1M", "--value-bytes", "1024", "--keys-per-request", "16"}}) {
    json report = json::parse(run(folder, plan_command(sizes + Words{"--json"})).out);
    std::vector<json> layouts = report.at("alternatives");
    ASSERT_GE(layouts.size(), 2u);
    layouts.push_back(report.at("recommended"));
    for (const json& layout : layouts) {
      std::istringstream words(layout.at("options").get<std::string>());
      Words options = {sizes.begin(), sizes.begin() + 4};
      for (std::string word; words >> word;) options.push_back(word);
      const json again = plan_of(folder, options);
      for (const auto& [name, value] : again.items()) EXPECT_EQ(layout.at(name), value) << name;
    }
  }
}

TEST(PlanCommand, CountsThePairsOfFiles) {
  const TemporaryFolder folder;
  const std::string input = write_file(folder / "a.tsv", three_thousand_pairs());
  std::filesystem::create_directory(folder / "tmp");
  const ProgramResult counted =
      run(folder, Words{"env", "TMPDIR=" + (folder / "tmp").string()} + plan_command({input}));
  ASSERT_EQ(counted.status, 0) << counted.err;
  EXPECT_THAT(counted.out, StartsWith("3000 keys, values of up to 8 bytes, "));
  EXPECT_TRUE(std::filesystem::is_empty(folder / "tmp"));
  EXPECT_EQ(plan_of(folder, {input}),
            plan_of(folder, {"--keys", "3000", "--value-bytes", "8", "--fixed-values"}));
  // Two files, of values of different lengths.
  const std::string more = write_file(folder / "b.tsv", "another\t123456789\n");
  const json best = plan_of(folder, {input, more});
  EXPECT_EQ(best.at("key_count"), 3001);
  EXPECT_EQ(best.at("value_bytes"), 9);
  EXPECT_EQ(best.at("length_bytes"), 1);
}

TEST(PlanCommand, ReadsFilesAsBuildDoes) {
  const TemporaryFolder folder;
  const std::string twice = write_file(folder / "a.csv", "id,text\na,1\na,2\n");
  const Words columns = {"--key-column", "id", "--value-column", "text"};
  const ProgramResult refused = run(folder, plan_command(Words{twice} + columns));
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("the key \"a\" comes twice"));
  EXPECT_EQ(
      plan_of(folder, Words{twice} + columns + Words{"--on-duplicate", "last"}).at("key_count"), 1);
  const ProgramResult standard =
      run(folder, plan_command({"-", "--format", "tsv", "--index", "--json"}), "one\ntwo\n");
  EXPECT_EQ(json::parse(standard.out).at("recommended").at("key_count"), 2);
}

TEST(PlanCommand, TakesEitherFilesOrSizes) {
  const TemporaryFolder folder;
  const std::string input = write_file(folder / "a.tsv", "a\tb\n");
  const auto error_with = [&](const Words& words) {
    const ProgramResult result = run(folder, plan_command(words));
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
    return result.err;
  };
  EXPECT_THAT(error_with({input, "--keys", "5"}), HasSubstr("--keys contradicts a file of pairs"));
  EXPECT_THAT(error_with({input, "--value-bytes", "5"}), HasSubstr("--value-bytes contradicts"));
  EXPECT_THAT(error_with({input, "--fixed-values"}), HasSubstr("--fixed-values contradicts"));
  const std::string cure = "; or give files of pairs";
  EXPECT_THAT(error_with({}), HasSubstr("missing --keys and --value-bytes" + cure));
  EXPECT_THAT(error_with({"--keys", "5"}), HasSubstr("missing --value-bytes" + cure));
  EXPECT_THAT(error_with({"--value-bytes", "5"}), HasSubstr("missing --keys" + cure));
}

// All of them: layout_options_test.cpp.
TEST(PlanCommand, RefusesContradictions) {
  const TemporaryFolder folder;
  const std::string input = write_file(folder / "a.tsv", "a\tb\n");
  for (const Words& words : {Words{"--short-key"}, {"--keys-per-request", "16", "--index"}}) {
    const ProgramResult plan =
        run(folder, Words{kBlindfuse, "plan", "--keys", "5", "--value-bytes", "5"} + words);
    EXPECT_EQ(plan.status, 2) << plan.err;
    const ProgramResult built =
        run(folder, Words{kBlindfuse, "build", input, "--output", folder / "db"} + words);
    EXPECT_EQ(built.status, 2) << built.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "db"));
  }
}

TEST(PlanCommand, TakesCountsWithAUnit) {
  const TemporaryFolder folder;
  const auto plan = [&](const std::string& keys) {
    return run(folder, plan_command({"--keys", keys, "--value-bytes", "8"}));
  };
  EXPECT_THAT(plan("20k").out, StartsWith("20000 keys, "));
  EXPECT_THAT(plan("1M").out, StartsWith("1000000 keys, "));
  EXPECT_THAT(run(folder, plan_command({"--keys", "1k", "--value-bytes", "2KiB"})).out,
              StartsWith("1000 keys, values of up to 2048 bytes, "));
  for (const std::string wrong : {"0k", "5G", "1m", "1.5M", "-1M", "99999999999999G"}) {
    EXPECT_EQ(plan(wrong).status, 2) << wrong;
  }
}

TEST(PlanCommand, RefusesBitsThatFailTooOftenWithTheNumbers) {
  const TemporaryFolder folder;
  const ProgramResult result =
      run(folder, plan_command({"--keys", "1000000", "--value-bytes", "100", "--shards", "1",
                                "--response-bits", "9", "--query-bits", "25"}));
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("2^-40"));
  EXPECT_THAT(result.err, HasSubstr("query_bits 25, response_bits 9"));
}

TEST(DryRunOfBuild, ShowsThePlanAndWritesNothing) {
  const TemporaryFolder folder;
  const std::string input = write_file(folder / "a.tsv", three_thousand_pairs());
  const Words build = {kBlindfuse, "build", input, "--output", folder / "db"};
  const Words dry = build + Words{"--dry-run"};
  const ProgramResult fresh = run(folder, dry + Words{"--json"});
  ASSERT_EQ(fresh.status, 0) << fresh.err;
  const json best = json::parse(fresh.out).at("recommended");
  const json planned = plan_of(folder, {input});
  for (const auto& [name, value] : planned.items()) {
    EXPECT_EQ(best.at(name), value) << name;
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "db"));
  EXPECT_THAT(run(folder, dry + Words{"--keys-per-request", "16"}).out,
              HasSubstr("Recommended: --mode packed --keys-per-request 16 --shards "));

  ASSERT_EQ(run(folder, build + Words{"--mode", "packed", "--shards", "2"}).status, 0);
  const auto before = snapshot(folder / "db");
  EXPECT_THAT(run(folder, dry).out, AllOf(HasSubstr("A build keeps the existing layout"),
                                          HasSubstr("--mode packed --shards 2: ")));
  write_file(folder / "a.tsv", three_thousand_pairs() + "long\t123456789\n");
  EXPECT_THAT(run(folder, dry).out,
              HasSubstr("A build chooses the layout again, because values are now up to 9 bytes"));
  EXPECT_THAT(run(folder, dry + Words{"--fresh"}).out, Not(HasSubstr("A build")));
  EXPECT_EQ(snapshot(folder / "db"), before);
}

// A build takes what a plan recommends.
TEST(DryRunOfBuild, IsWhatABuildTakes) {
  const TemporaryFolder folder;
  const std::string input = write_file(folder / "a.tsv", three_thousand_pairs());
  for (const Words& options : {Words{}, {"--mode", "packed"}, {"--keys-per-request", "4"}}) {
    const json best = plan_of(folder, Words{input} + options);
    const ProgramResult built = run(
        folder, Words{kBlindfuse, "build", input, "--output", folder / "db", "--fresh", "--json"} +
                    options);
    ASSERT_EQ(built.status, 0) << built.err;
    const json layout = json::parse(built.out).at("layout");
    EXPECT_EQ(layout.at("mode"), best.at("mode"));
    EXPECT_EQ(layout.at("shard_count"), best.at("shard_count"));
    EXPECT_EQ(layout.value("bucket_count", 0), best.value("bucket_count", 0));
  }
}

}  // namespace
}  // namespace blindfuse::program_testing
