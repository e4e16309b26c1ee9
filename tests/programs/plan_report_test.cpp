// The reports of `plan` and `build --dry-run`, with rates that are known, and the processor's name
// in them.
#include "host/commands/plan_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/publish/builder_testing.h"
#include "tests/publish/known_rates.h"

namespace blindfuse::plan_reporting {
namespace {

using support::known_rates;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

PlanQuestion keywords(uint64_t key_count, uint32_t value_bytes) {
  PlanQuestion question;
  question.request.key_count = key_count;
  question.request.record = {8, 0, value_bytes};
  question.longest_value = value_bytes;
  return question;
}

PlanQuestion several_keys() {
  PlanQuestion question = keywords(1 << 20, 1024);
  question.request.batch = BatchCode{64, 96};
  return question;
}

std::string text(const PlanQuestion& question) { return plan_text(question, known_rates()); }
nlohmann::json json(const PlanQuestion& question) { return plan_json(question, known_rates()); }

// The lines under a heading, to the next empty one.
std::vector<std::string> lines_under(const std::string& text, const std::string& heading) {
  std::istringstream all(text.substr(text.find(heading)));
  std::vector<std::string> lines;
  std::string line;
  std::getline(all, line);
  while (std::getline(all, line) && !line.empty()) lines.push_back(line);
  return lines;
}

// Matrix: 40,960 * 33,024 = 1,352,663,040 bytes: 135.266 ms alone and 16.908 ms in batches. Tables:
// 33 * 25,141,248 = 829,661,184 bytes, which are 207,415,296 digits: 103.708 ms and 51.854 ms.
TEST(PlanReport, RecommendsALayoutWithItsCostInFiveLines) {
  const std::string out = text(keywords(1 << 20, 1024));
  EXPECT_THAT(out, StartsWith("1048576 keys, values of up to 1024 bytes, 100 look-ups a client and "
                              "epoch\n\nRecommended: --mode packed --shards 32\n"));
  EXPECT_EQ(
      lines_under(out, "Recommended: "),
      (std::vector<std::string>{
          "  first look-up  348.3 kB: 149.3 kB of tables and masks, 157.7 kB up, 41.3 kB down",
          "  later look-up  199.0 kB: 157.7 kB up, 41.3 kB down",
          "  server memory  2.18 GB: matrix 1.35 GB, packing tables 829.7 MB, masks 143.6 kB",
          "  time           239 ms of one core alone, 68.8 ms in batches of 32",
          "  throughput     14.5 look-ups a second and core"}));
}

TEST(PlanReport, ShowsAlternativesWithReasonOptionsAndCost) {
  const std::vector<std::string> lines =
      lines_under(text(keywords(1 << 20, 1024)), "Alternatives:");
  ASSERT_EQ(lines.size() % 3, 0u);
  ASSERT_LE(lines.size(), 9u);
  EXPECT_EQ(lines.at(0), "  --mode hint --shards 12");
  // 104,448 * 12,384 bytes of matrix are 16.169 ms in batches, of 68.762; with 43.9 MB of hints
  // 1,337.4 MB, of 2,182.5. The second takes 8,026,376 bytes in an epoch, of 20,046,912.
  EXPECT_THAT(lines.at(1), AllOf(StartsWith("    secrecy rests on LWE alone; "),
                                 HasSubstr("4.3 times the look-ups a second"),
                                 HasSubstr("39 % less server memory")));
  EXPECT_THAT(lines.at(2),
              AllOf(StartsWith("    first "), HasSubstr(", later "), HasSubstr("; memory 1.3"),
                    HasSubstr(" ms alone, "), HasSubstr(" a second and core")));
  EXPECT_THAT(lines.at(3), StartsWith("  --mode packed --levels 2 --shards "));
  EXPECT_THAT(lines.at(4), HasSubstr("60 % fewer bytes for a client in an epoch"));
}

TEST(PlanReport, FitsOnAScreen) {
  for (const PlanQuestion& question :
       {keywords(1, 1), keywords(1 << 20, 1024), keywords(100'000'000, 32), several_keys()}) {
    const std::string out = text(question);
    EXPECT_LE(std::ranges::count(out, '\n'), 24) << out;
  }
}

TEST(PlanReport, SaysWhatSecrecyRestsOn) {
  EXPECT_THAT(text(keywords(1 << 20, 1024)), HasSubstr("secrecy rests on ring LWE"));
  const std::string tiny = text(keywords(100, 3));
  EXPECT_THAT(tiny, HasSubstr("Recommended: --mode hint --shards 1\n"));
  EXPECT_THAT(tiny, HasSubstr("secrecy rests on LWE (lwe-1774, "));
  EXPECT_THAT(tiny, HasSubstr(" of tables and hints, "));
  EXPECT_THAT(tiny, Not(HasSubstr("Alternatives")));
  EXPECT_THAT(tiny, Not(HasSubstr("packing tables")));
}

TEST(PlanReport, TellsProgramsTheSame) {
  const nlohmann::json report = json(keywords(1 << 20, 1024));
  const nlohmann::json& best = report.at("recommended");
  EXPECT_EQ(best.at("options"), "--mode packed --shards 32");
  EXPECT_EQ(best.at("shard_count"), 32);
  EXPECT_EQ(best.at("total_bytes"), 20'046'912);
  EXPECT_EQ(best.at("later_bytes"), 198'976);
  EXPECT_EQ(best.at("first_bytes"), 20'046'912 - 99 * 198'976);
  EXPECT_EQ(best.at("server_bytes"), 1'352'663'040u + 829'661'184u + 143'616u);
  EXPECT_NEAR(best.at("alone_milliseconds"), 238.973'952, 1e-6);
  EXPECT_NEAR(best.at("batch_milliseconds"), 68.762'112, 1e-6);
  EXPECT_NEAR(best.at("lookups_per_core_second"), 14.542'892'458, 1e-6);
  EXPECT_EQ(report.at("batch"), 32);
  EXPECT_EQ(report.at("lookups_per_client"), 100);
  EXPECT_TRUE(report.at("processor").is_string());
  ASSERT_GE(report.at("alternatives").size(), 2u);
  EXPECT_EQ(report.at("alternatives").at(0).at("options"), "--mode hint --shards 12");
  EXPECT_EQ(report.at("alternatives").at(0).at("reasons").at(0), "secrecy rests on LWE alone");
  EXPECT_FALSE(report.contains("keys_that_pay"));
  // Every layout of every kind that is open, with what each costs.
  nlohmann::json chosen;
  for (const nlohmann::json& layout : report.at("layouts")) {
    EXPECT_GT(layout.at("lookups_per_core_second"), 0);
    if (layout.at("chosen").get<bool>()) {
      EXPECT_TRUE(chosen.is_null());
      chosen = layout;
    }
  }
  chosen.erase("chosen");
  EXPECT_EQ(chosen, best);
}

TEST(PlanReport, OfSeveralKeysCountsRequestsAndKeys) {
  const std::string out = text(several_keys());
  EXPECT_THAT(out, HasSubstr("Recommended: --mode packed --keys-per-request 64 --shards 384\n"));
  EXPECT_THAT(out, AllOf(HasSubstr("  later request  4.21 MB: 3.71 MB up, 495.4 kB down\n"),
                         HasSubstr("  throughput     95.7 keys a second and core\n"),
                         HasSubstr("  --mode packed --shards 32\n    fewer bytes where clients ask "
                                   "for fewer than 22 keys at a time"),
                         Not(HasSubstr("look-up  "))));
  const nlohmann::json report = json(several_keys());
  EXPECT_EQ(report.at("keys_that_pay"), 22);
  const nlohmann::json& best = report.at("recommended");
  EXPECT_EQ(best.at("keys_per_request"), 64);
  EXPECT_EQ(best.at("bucket_count"), 96);
  EXPECT_EQ(best.at("record_count"), 3 << 20);
  EXPECT_EQ(best.at("row_count"), 12'288);
  EXPECT_EQ(best.at("total_bytes"), 10'164'672);
  EXPECT_NEAR(best.at("alone_milliseconds"), 1703.166'566'4, 1e-6);
  EXPECT_NEAR(best.at("lookups_per_core_second"), 95.669, 1e-3);
}

std::string name_in(const std::string& cpuinfo) {
  const builder_testing::TemporaryFolder root;
  std::filesystem::create_directory(root / "proc");
  std::ofstream(root / "proc" / "cpuinfo") << cpuinfo;
  return processor_name(root.path());
}

TEST(ProcessorName, IsTheModelOfTheFirstProcessor) {
  EXPECT_EQ(
      name_in("processor\t: 0\nmodel\t\t: 17\nmodel name\t: A 9000 @ 2: x \nmodel name\t: B\n"),
      "A 9000 @ 2: x");
}

TEST(ProcessorName, IsMadeOfNumbersWhereThereIsNoModel) {
  EXPECT_EQ(name_in("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n"),
            "CPU implementer 0x41, part 0xd4f");
}

TEST(ProcessorName, IsUnknownOtherwise) {
  for (const char* text :
       {"", "model name\t:\n", "model name of something : A\n", "CPU part : 1\n"}) {
    EXPECT_EQ(name_in(text), "unknown") << text;
  }
  EXPECT_EQ(processor_name("/nonexistent"), "unknown");
}

}  // namespace
}  // namespace blindfuse::plan_reporting
