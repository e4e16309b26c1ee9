// What `blindfuse plan` and `build --dry-run` say of requests for several keys.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/programs/known_rates_file.h"
#include "tests/programs/program_testing.h"

namespace blindfuse::program_testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> million_pairs(const std::vector<std::string>& more) {
  std::vector<std::string> words = {"--keys", "1048576", "--value-bytes", "1024", "--fixed-values"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// tests/publish/batch_plan_test.cpp reckons these numbers.
TEST(PlanOfSeveralKeys, TellsTheCostOfAKey) {
  const TemporaryFolder folder;
  const ProgramResult result =
      run(folder, plan_command(folder, million_pairs({"--keys-per-request", "64", "--json"})));
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");  // with rates of another machine, its memory is not this one's
  const json report = json::parse(result.out);
  const json chosen = report.at("compared").at(0);
  EXPECT_EQ(chosen.at("options"), "--mode packed --keys-per-request 64 --shards 384");
  EXPECT_EQ(chosen.at("keys_per_request"), 64);
  EXPECT_EQ(chosen.at("bucket_count"), 96);
  EXPECT_EQ(chosen.at("record_count"), 3 << 20);
  EXPECT_EQ(chosen.at("row_count"), 12'288);
  EXPECT_EQ(chosen.at("query_bytes"), 3'710'976);
  EXPECT_EQ(chosen.at("response_bytes"), 495'360);
  EXPECT_EQ(chosen.at("total_bytes"), 10'164'672);
  EXPECT_EQ(chosen.at("bytes_per_key"), 65'724);
  EXPECT_NEAR(chosen.at("passes_per_key"), 0.056'25, 1e-9);
  EXPECT_NEAR(chosen.at("alone_milliseconds"), 1703.166'566'4, 1e-6);
  EXPECT_NEAR(chosen.at("lookups_per_core_second"), 95.669, 1e-3);
  EXPECT_NEAR(chosen.at("dollars_per_million_lookups"), 9.306'157, 1e-5);
  EXPECT_EQ(report.at("compared").size(), 5u);
  const json several = report.at("several_keys");
  EXPECT_EQ(several.at("keys_per_request"), 64);
  EXPECT_EQ(several.at("bucket_count"), 96);
  EXPECT_EQ(several.at("single_key_bytes"), 4'206'336);
  EXPECT_EQ(several.at("keys_that_pay"), 22);
  EXPECT_TRUE(several.contains("left_out_bound"));
  EXPECT_EQ(several.at("one_key").at("shard_count"), 32);
  EXPECT_EQ(several.at("one_key").at("bytes_per_key"), 198'976);
  EXPECT_EQ(several.at("one_key").at("passes_per_key"), 1);
}

TEST(PlanOfSeveralKeys, ShowsLayoutsNextToThatForOneKey) {
  const TemporaryFolder folder;
  const std::string out =
      run(folder, plan_command(folder, million_pairs({"--keys-per-request", "64"}))).out;
  EXPECT_THAT(out, AllOf(HasSubstr("ring-2048, 64 keys a request in 96 buckets: "),
                         HasSubstr("\n*    384      12288     25/10/17 "),
                         HasSubstr("up and 495.4 kB down a request for up to 64 keys).\n"),
                         HasSubstr("at most twice as much as the matrix, or at most 256 MiB.\n")));
  EXPECT_THAT(
      out,
      AllOf(HasSubstr("\n               1     40960     199.0             1    1.35 GB "),
            HasSubstr("\n*        64 (96)     12288      65.7         0.056    4.87 GB    9.73 GB"),
            HasSubstr("\n         64 (96)     40960 "), HasSubstr("\n         16 (32)     12288 "),
            HasSubstr("\n       256 (384)     12288 ")));
  EXPECT_THAT(out, AllOf(HasSubstr("costs as much as a full one: 3.71 MB up and 495.4 kB down."),
                         HasSubstr("From 22 keys on, "), HasSubstr("64 keys in 96 buckets"),
                         HasSubstr("The server keeps 14.6 GB in memory: matrix 4.87 GB, packing "
                                   "tables 9.73 GB, masks 1.68 MB."),
                         // 4 bytes for each row of each bucket.
                         HasSubstr("waits there takes 4.72 MB more; serve's --queue-max "),
                         HasSubstr("$ per 1M: "), HasSubstr("Rates: A 9000, from ")));
  EXPECT_THAT(out, Not(HasSubstr("a look-up")));
}

// docs/PARAMETERS.md, section 9.
TEST(PlanOfSeveralKeys, SaysHowOftenARequestLeavesAKeyOut) {
  const TemporaryFolder folder;
  const auto plan_of = [&](const char* keys, const char* more) {
    return run(folder, plan_command(folder, {"--keys", "30000", "--value-bytes", "8",
                                             "--keys-per-request", keys, more}))
        .out;
  };
  const char* const kText = "--fixed-values";
  EXPECT_THAT(plan_of("3", kText), HasSubstr("3 keys in 14 buckets never leaves a key out.\n"));
  EXPECT_THAT(plan_of("10", kText),
              HasSubstr("a probability of at most 9.5e-07 (proven for keys that no one chose).\n"));
  EXPECT_THAT(plan_of("64", kText), HasSubstr(" (measured, with 95 % confidence).\n"));
  EXPECT_EQ(json::parse(plan_of("3", "--json")).at("several_keys").at("left_out_bound"), 0);
}

// The options that are shown make plan choose the same layout.
TEST(PlanOfSeveralKeys, SaysHowToChooseALayout) {
  const TemporaryFolder folder;
  const std::vector<std::string> sizes = {"--keys", "30000", "--value-bytes", "8", "--json"};
  std::vector<std::string> asked = sizes;
  asked.insert(asked.end(), {"--keys-per-request", "16"});
  const json compared = json::parse(run(folder, plan_command(folder, asked)).out).at("compared");
  EXPECT_GE(compared.size(), 3u);
  for (const json& layout : compared) {
    std::vector<std::string> command = sizes;
    std::istringstream words(layout.at("options").get<std::string>());
    for (std::string word; words >> word;) command.push_back(word);
    const ProgramResult again = run(folder, plan_command(folder, command));
    ASSERT_EQ(again.status, 0) << again.err;
    EXPECT_EQ(json::parse(again.out).at("compared").at(0), layout);
  }
}

TEST(PlanOfSeveralKeys, RefusesContradictions) {
  const TemporaryFolder folder;
  const auto error_with = [&](int status, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"--keys", "3000", "--value-bytes", "8", "--keys-per-request"};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramResult result = run(folder, plan_command(folder, words));
    EXPECT_EQ(result.status, status) << result.err;
    return result.err;
  };
  EXPECT_THAT(error_with(2, {"16", "--index"}), HasSubstr("--index makes a database of numbers"));
  EXPECT_THAT(error_with(2, {"16", "--mode", "hint"}), HasSubstr("--mode hint has none"));
  EXPECT_THAT(error_with(2, {"16", "--levels", "2"}), HasSubstr("leave --levels 2 out"));
  EXPECT_THAT(error_with(2, {"0"}), HasSubstr("--keys-per-request"));
  EXPECT_THAT(error_with(1, {"16", "--shards", "33"}),
              HasSubstr("is not a multiple of the 32 buckets"));
}

TEST(DryRunOfSeveralKeys, ShowsLayoutsAndWritesNothing) {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 3000; ++i) lines += "k" + std::to_string(i) + "\t12345678\n";
  const std::string input = write_file(folder / "a.tsv", lines);
  const ProgramResult dry =
      run(folder, {kBlindfuse, "build", input, "--output", folder / "db", "--dry-run", "--rates",
                   known_rates_file(folder), "--keys-per-request", "16"});
  ASSERT_EQ(dry.status, 0) << dry.err;
  EXPECT_EQ(dry.out, run(folder, plan_command(folder, {input, "--keys-per-request", "16"})).out);
  EXPECT_THAT(dry.out, HasSubstr("16 keys a request in 32 buckets"));
  EXPECT_FALSE(std::filesystem::exists(folder / "db"));
}

}  // namespace
}  // namespace blindfuse::program_testing
