// What `blindfuse plan` and `build --dry-run` say of the server, and of pairs that are there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/programs/known_rates_file.h"
#include "tests/programs/program_testing.h"

namespace blindfuse::program_testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string three_thousand_pairs() {
  std::string lines;
  for (int i = 0; i < 3000; ++i) lines += "k" + std::to_string(i) + "\t12345678\n";
  return lines;
}

const std::vector<std::string> kMillion = {"--keys", "1048576", "--value-bytes", "1024",
                                           "--fixed-values"};

std::vector<std::string> with(std::vector<std::string> words,
                              const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

json chosen_of(const json& report) {
  json found;
  for (const json& layout : report.at("layouts")) {
    if (!layout.at("chosen").get<bool>()) continue;
    EXPECT_TRUE(found.is_null());
    found = layout;
  }
  return found;
}

// tests/publish/plan_cost_test.cpp reckons these numbers.
TEST(PlanCommand, TellsTheCostOfEachLayout) {
  const TemporaryFolder folder;
  const json report =
      json::parse(run(folder, plan_command(folder, with(kMillion, {"--json"}))).out);
  const json chosen = chosen_of(report);
  EXPECT_EQ(chosen.at("shard_count"), 32);
  EXPECT_EQ(chosen.at("total_bytes"), 20'046'912);
  EXPECT_EQ(chosen.at("server_bytes"), 2'182'467'840u);
  EXPECT_NEAR(chosen.at("alone_milliseconds"), 238.973'952, 1e-6);
  EXPECT_NEAR(chosen.at("lookups_per_core_second"), 14.542'892'458, 1e-6);
  EXPECT_NEAR(chosen.at("dollars_per_million_lookups"), 18.853'996, 1e-5);
  EXPECT_EQ(report.at("batch"), 32);
  EXPECT_EQ(report.at("dollars_per_gigabyte"), 0.09);
  EXPECT_EQ(report.at("dollars_per_core_hour"), 0.0425);
  EXPECT_EQ(report.at("rates").at("processor"), "A 9000");
  EXPECT_FALSE(report.contains("prefer"));
}

TEST(PlanCommand, ComparesTheChosenLayoutWithTheBestOfOtherKinds) {
  const TemporaryFolder folder;
  const std::string out = run(folder, plan_command(folder, kMillion)).out;
  EXPECT_THAT(
      out,
      AllOf(HasSubstr("* packed   "), HasSubstr("--mode packed --levels 1 --shards 32\n"),
            HasSubstr("  hint   "), HasSubstr("--mode hint --shards 12\n"),
            HasSubstr("  packed, 2 levels   "), HasSubstr("--mode packed --levels 2 --shards ")));
  EXPECT_THAT(out, AllOf(HasSubstr("in batches of 32"), HasSubstr("0.09 US dollars"),
                         HasSubstr("0.0425 for each"), HasSubstr("ChalametPIR paper"),
                         HasSubstr("Rates: A 9000, from ")));
  // A short key is for records of up to 512 bytes.
  EXPECT_THAT(out, Not(HasSubstr("short key")));
  const json compared =
      json::parse(run(folder, plan_command(folder, with(kMillion, {"--json"}))).out).at("compared");
  EXPECT_EQ(compared.at(0).at("options"), "--mode packed --levels 1 --shards 32");
  EXPECT_GE(compared.size(), 3u);
}

TEST(PlanCommand, ComparesOnlyWhatIsOpen) {
  const TemporaryFolder folder;
  const auto out_with = [&](const std::vector<std::string>& more) {
    return run(folder, plan_command(folder, with({"--keys", "3000", "--value-bytes", "8"}, more)))
        .out;
  };
  EXPECT_THAT(out_with({}), HasSubstr("packed, 2 levels, short key"));
  EXPECT_THAT(out_with({"--levels", "1"}), Not(HasSubstr("2 levels")));
  EXPECT_THAT(out_with({"--mode", "hint"}), Not(HasSubstr("--mode packed")));
  EXPECT_THAT(out_with({"--levels", "2"}),
              AllOf(Not(HasSubstr("--mode hint")), Not(HasSubstr("--levels 1"))));
}

// The options that are shown make build take the same layout.
TEST(PlanCommand, SaysHowToChooseALayout) {
  const TemporaryFolder folder;
  const std::vector<std::string> sizes = {"--keys", "3000", "--value-bytes", "8", "--json"};
  const json compared = json::parse(run(folder, plan_command(folder, sizes)).out).at("compared");
  for (const json& layout : compared) {
    std::istringstream words(layout.at("options").get<std::string>());
    std::vector<std::string> options;
    for (std::string word; words >> word;) options.push_back(word);
    const json again = json::parse(run(folder, plan_command(folder, with(sizes, options))).out);
    json chosen = chosen_of(again);
    chosen.erase("chosen");
    json expected = layout;
    expected.erase("options");
    EXPECT_EQ(chosen, expected);
  }
}

TEST(PlanCommand, CountsThePairsOfFiles) {
  const TemporaryFolder folder;
  const std::string input = write_file(folder / "a.tsv", three_thousand_pairs());
  std::filesystem::create_directory(folder / "tmp");
  std::vector<std::string> command = plan_command(folder, {input});
  command.insert(command.begin(), {"env", "TMPDIR=" + (folder / "tmp").string()});
  const ProgramResult counted = run(folder, command);
  ASSERT_EQ(counted.status, 0) << counted.err;
  const ProgramResult given =
      run(folder, plan_command(folder, {"--keys", "3000", "--value-bytes", "8", "--fixed-values"}));
  EXPECT_EQ(counted.out, given.out);
  EXPECT_TRUE(std::filesystem::is_empty(folder / "tmp"));
  // Two files, of values of different lengths.
  const std::string more = write_file(folder / "b.tsv", "another\t123456789\n");
  const json report = json::parse(run(folder, plan_command(folder, {input, more, "--json"})).out);
  EXPECT_EQ(chosen_of(report).at("key_count"), 3001);
  EXPECT_EQ(chosen_of(report).at("value_bytes"), 9);
  EXPECT_EQ(chosen_of(report).at("length_bytes"), 1);
}

TEST(PlanCommand, ReadsFilesAsBuildDoes) {
  const TemporaryFolder folder;
  const std::string twice = write_file(folder / "a.csv", "id,text\na,1\na,2\n");
  const std::vector<std::string> columns = {"--key-column", "id", "--value-column", "text"};
  const ProgramResult refused = run(folder, plan_command(folder, with({twice}, columns)));
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("the key \"a\" comes twice"));
  const json report = json::parse(
      run(folder,
          plan_command(folder, with(with({twice}, columns), {"--on-duplicate", "last", "--json"})))
          .out);
  EXPECT_EQ(chosen_of(report).at("key_count"), 1);
  const ProgramResult standard = run(
      folder, plan_command(folder, {"-", "--format", "tsv", "--index", "--json"}), "one\ntwo\n");
  EXPECT_EQ(chosen_of(json::parse(standard.out)).at("key_count"), 2);
}

TEST(PlanCommand, TakesEitherFilesOrSizes) {
  const TemporaryFolder folder;
  const std::string input = write_file(folder / "a.tsv", "a\tb\n");
  const auto error_with = [&](const std::vector<std::string>& words) {
    const ProgramResult result = run(folder, plan_command(folder, words));
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

TEST(PlanCommand, RefusesContradictions) {
  const TemporaryFolder folder;
  const std::string input = write_file(folder / "a.tsv", "a\tb\n");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--levels", "2", "--mode", "hint"},
        {"--short-key"},
        {"--rates", known_rates_file(folder), "--calibrate"}}) {
    const ProgramResult plan =
        run(folder, with({kBlindfuse, "plan", "--keys", "5", "--value-bytes", "5"}, words));
    EXPECT_EQ(plan.status, 2) << plan.err;
    const ProgramResult built =
        run(folder, with({kBlindfuse, "build", input, "--output", folder / "db"}, words));
    EXPECT_EQ(built.status, 2) << built.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "db"));
  }
}

TEST(PlanCommand, SaysWhatIsWrongWithRates) {
  const TemporaryFolder folder;
  json rates = json::parse(read_whole(known_rates_file(folder)));
  rates["memory_bytes_per_second"] = 0;
  const std::string file = write_file(folder / "bad.json", rates.dump());
  const std::vector<std::string> sizes = {kBlindfuse, "plan", "--keys", "5", "--value-bytes", "5"};
  const ProgramResult bad = run(folder, with(sizes, {"--rates", file}));
  EXPECT_EQ(bad.status, 1);
  EXPECT_THAT(bad.err, AllOf(HasSubstr("bad.json has a \"memory_bytes_per_second\" that is not"),
                             HasSubstr("plan --calibrate")));
  const ProgramResult missing = run(folder, with(sizes, {"--rates", folder / "none.json"}));
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.err, HasSubstr("none.json"));
  // Before the input is read, and also where the choice of a layout does not need rates.
  const std::string input = write_file(folder / "pairs.tsv", "no tab\n");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{kBlindfuse, "plan", input},
        {kBlindfuse, "build", input, "--output", folder / "db"},
        {kBlindfuse, "build", input, "--output", folder / "db", "--dry-run"}}) {
    const ProgramResult refused = run(folder, with(words, {"--rates", folder / "none.json"}));
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.err, HasSubstr("none.json"));
  }
}

// The file may be a stranger's.
TEST(PlanCommand, ShowsNoControlCharactersOfRates) {
  const TemporaryFolder folder;
  json rates = json::parse(read_whole(known_rates_file(folder)));
  rates["processor"] = "A 9000\x1b[2J\n" + std::string(10'000, 'x');
  const std::string file = write_file(folder / "odd.json", rates.dump());
  const ProgramResult result =
      run(folder, {kBlindfuse, "plan", "--keys", "5", "--value-bytes", "5", "--rates", file});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("Rates: A 9000\\x1b[2J\\x0axxx"));
  EXPECT_THAT(result.out, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr(std::string(100, 'x')))));
}

// What is measured is not known here, except that it is positive: the file is not read otherwise.
TEST(PlanCommand, MeasuresOnceAndKeepsTheRates) {
  const TemporaryFolder folder;
  const auto rates_with = [&](const std::vector<std::string>& more) {
    const ProgramResult result =
        run(folder, with({"env", "XDG_CACHE_HOME=" + folder.path().string(), kBlindfuse, "plan",
                          "--keys", "5", "--value-bytes", "5", "--json"},
                         more));
    EXPECT_EQ(result.status, 0) << result.err;
    return json::parse(result.out).at("rates");
  };
  const std::filesystem::path file = folder.path() / "blindfuse" / "rates.json";
  const json measured = rates_with({});
  EXPECT_EQ(json::parse(read_whole(file)), measured);
  for (const auto& [name, value] : measured.items()) {
    EXPECT_TRUE(value.is_string() || value.get<double>() > 0) << name;
  }
  json marked = measured;
  marked["memory_bytes_per_second"] = 12'345.0;
  write_file(file, marked.dump());
  EXPECT_EQ(rates_with({}), marked);
  EXPECT_NE(rates_with({"--calibrate"}), marked);
  EXPECT_NE(json::parse(read_whole(file)), marked);
  // Of another program.
  marked["program"] = "0.0.1";
  write_file(file, marked.dump());
  EXPECT_EQ(rates_with({}).at("program"), measured.at("program"));
}

TEST(PlanCommand, MarksWhatBuildPrefers) {
  const TemporaryFolder folder;
  const std::string input = write_file(folder / "a.tsv", three_thousand_pairs());
  for (const std::string preference : {"bytes", "speed", "balanced"}) {
    const std::vector<std::string> prefer = {"--prefer", preference, "--json"};
    const json plan = json::parse(run(folder, plan_command(folder, with({input}, prefer))).out);
    EXPECT_EQ(plan.at("prefer"), preference);
    const ProgramResult built =
        run(folder, with({kBlindfuse, "build", input, "--output", folder / "db", "--fresh",
                          "--rates", known_rates_file(folder)},
                         prefer));
    ASSERT_EQ(built.status, 0) << built.err;
    const json layout = json::parse(built.out).at("layout");
    const json chosen = chosen_of(plan);
    for (const char* member : {"mode", "shard_count"}) {
      EXPECT_EQ(layout.at(member), chosen.at(member)) << preference;
    }
    for (const char* member : {"levels", "short_key_order"}) {
      EXPECT_EQ(layout.value(member, 0), chosen.value(member, 0)) << preference;
    }
  }
  EXPECT_EQ(run(folder, plan_command(folder, {input, "--prefer", "money"})).status, 2);
}

TEST(PlanCommand, TakesCountsWithAUnit) {
  const TemporaryFolder folder;
  const auto plan = [&](const std::string& keys) {
    return run(folder, plan_command(folder, {"--keys", keys, "--value-bytes", "8"}));
  };
  EXPECT_EQ(plan("20k").out, plan("20000").out);
  EXPECT_EQ(plan("1M").out, plan("1000000").out);
  for (const std::string wrong : {"0k", "5G", "1m", "1.5M", "-1M", "99999999999999G"}) {
    EXPECT_EQ(plan(wrong).status, 2) << wrong;
  }
}

TEST(PlanCommand, SaysWhatItLeavesOut) {
  const TemporaryFolder folder;
  // 50 packs, and a matrix of 20 MB.
  const ProgramResult table =
      run(folder, plan_command(folder, {"--keys", "100", "--value-bytes", "100000"}));
  EXPECT_THAT(table.out, HasSubstr("hint mode, lwe-1774"));
  EXPECT_THAT(table.out, Not(HasSubstr("ring-2048")));
  EXPECT_THAT(table.out, HasSubstr("Packed layouts whose packing tables take more than the matrix, "
                                   "and more than 256 MiB,\n  are left out here"));
}

TEST(PlanCommand, ShowsOneModeWhereItIsFixed) {
  const TemporaryFolder folder;
  const std::vector<std::string> plan =
      plan_command(folder, {"--keys", "1048576", "--value-bytes", "1024"});
  const auto plan_with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = plan;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(folder, arguments);
  };
  const std::vector<std::vector<std::string>> hint_modes = {{"--mode", "hint"},
                                                            {"--params", "lwe-1288"}};
  for (const std::vector<std::string>& hint : hint_modes) {
    const std::string out = plan_with(hint).out;
    EXPECT_THAT(out, HasSubstr("* is what `build` would choose"));
    EXPECT_THAT(out, Not(HasSubstr("ring-2048")));
    EXPECT_THAT(out, Not(HasSubstr("packing tables")));
  }
  EXPECT_THAT(plan_with({"--mode", "packed"}).out, Not(HasSubstr("left out")));
  const auto packed = json::parse(plan_with({"--mode", "packed", "--json"}).out);
  for (const auto& layout : packed["layouts"]) EXPECT_EQ(layout["lwe"], "ring-2048");
  const ProgramResult both = plan_with({"--mode", "packed", "--params", "lwe-1774"});
  EXPECT_EQ(both.status, 2);
  EXPECT_THAT(both.err, HasSubstr("--mode packed takes ring-2048"));
  EXPECT_EQ(std::ranges::count(both.err, '\n'), 1) << both.err;
}

TEST(PlanCommand, RefusesBitsThatFailTooOftenWithTheNumbers) {
  const TemporaryFolder folder;
  const ProgramResult result =
      run(folder, plan_command(folder, {"--keys", "1000000", "--value-bytes", "100", "--shards",
                                        "1", "--response-bits", "9", "--query-bits", "25"}));
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("2^-40"));
  EXPECT_THAT(result.err, HasSubstr("query_bits 25, response_bits 9"));
}

TEST(DryRunOfBuild, ShowsLayoutsAndWritesNothing) {
  const TemporaryFolder folder;
  const std::string input = write_file(folder / "a.tsv", three_thousand_pairs());
  const std::vector<std::string> build = {kBlindfuse, "build", input, "--output", folder / "db"};
  const std::vector<std::string> dry =
      with(build, {"--dry-run", "--rates", known_rates_file(folder)});
  const ProgramResult fresh = run(folder, dry);
  ASSERT_EQ(fresh.status, 0) << fresh.err;
  EXPECT_EQ(fresh.out, run(folder, plan_command(folder, {input})).out);
  EXPECT_FALSE(std::filesystem::exists(folder / "db"));

  ASSERT_EQ(run(folder, with(build, {"--mode", "packed", "--shards", "2"})).status, 0);
  const auto before = snapshot(folder / "db");
  EXPECT_THAT(run(folder, dry).out, AllOf(HasSubstr("A build keeps the layout that is there"),
                                          HasSubstr("--mode packed --levels 1 --shards 2,")));
  write_file(folder / "a.tsv", three_thousand_pairs() + "long\t123456789\n");
  EXPECT_THAT(run(folder, dry).out,
              HasSubstr("A build chooses the layout again, because values are now up to 9 bytes"));
  EXPECT_THAT(run(folder, with(dry, {"--fresh"})).out, Not(HasSubstr("A build")));
  EXPECT_EQ(snapshot(folder / "db"), before);
}

}  // namespace
}  // namespace blindfuse::program_testing
