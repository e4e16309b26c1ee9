#include "host/commands/layout_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/errors.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

LayoutOptions parsed(const std::string& line) {
  CLI::App command;
  LayoutOptions options;
  options.add_to(command);
  command.parse(line);
  return options;
}

TEST(LayoutOptions, LeaveModeAndSetOpen) {
  for (const char* line : {"", "--mode auto"}) {
    EXPECT_EQ(parsed(line).mode(), std::nullopt) << line;
    EXPECT_EQ(parsed(line).lwe(), nullptr) << line;
  }
}

TEST(LayoutOptions, TakeAMode) {
  EXPECT_EQ(parsed("--mode hint").mode(), Mode::kHint);
  EXPECT_EQ(parsed("--mode packed").mode(), Mode::kPacked);
  EXPECT_EQ(parsed("--mode packed").lwe(), nullptr);
  EXPECT_THROW(parsed("--mode ring"), CLI::ValidationError);
}

TEST(LayoutOptions, TakeASetForItsMode) {
  for (const char* also : {"", " --mode auto", " --mode hint"}) {
    const LayoutOptions options = parsed("--params lwe-1572" + std::string(also));
    EXPECT_EQ(options.mode(), Mode::kHint) << also;
    EXPECT_EQ(options.lwe(), find_lwe_params("lwe-1572")) << also;
  }
  EXPECT_EQ(parsed("--params ring-2048").mode(), Mode::kPacked);
  EXPECT_EQ(parsed("--mode packed --params ring-2048").mode(), Mode::kPacked);
}

TEST(LayoutOptions, RefuseASetOfTheOtherMode) {
  const LayoutOptions lattice = parsed("--mode packed --params lwe-1774");
  EXPECT_THROW(lattice.mode(), UsageError);
  EXPECT_THAT(support::input_error_of([&] { lattice.mode(); }),
              AllOf(HasSubstr("--mode packed and --params lwe-1774"),
                    HasSubstr("lwe-1774 is for --mode hint"), HasSubstr("takes ring-2048")));
  const LayoutOptions ring = parsed("--mode hint --params ring-2048");
  EXPECT_THAT(support::input_error_of([&] { ring.mode(); }),
              AllOf(HasSubstr("ring-2048 is for --mode packed"),
                    HasSubstr("takes lwe-1774, lwe-1572, lwe-1288")));
}

TEST(LayoutOptions, TwoLevelsAreOfThePackedMode) {
  EXPECT_EQ(parsed("--levels 2").mode(), Mode::kPacked);
  EXPECT_EQ(parsed("--levels 2 --short-key --mode packed").mode(), Mode::kPacked);
  EXPECT_EQ(parsed("--levels 2 --params ring-2048").mode(), Mode::kPacked);
  EXPECT_EQ(parsed("--levels 1").mode(), std::nullopt);
  EXPECT_EQ(parsed("--levels 1 --mode hint").mode(), Mode::kHint);
  EXPECT_THROW(parsed("--levels 3"), CLI::ValidationError);
}

TEST(LayoutOptions, RefuseTwoLevelsInTheHintMode) {
  const LayoutOptions mode = parsed("--levels 2 --mode hint");
  EXPECT_THROW(mode.mode(), UsageError);
  EXPECT_EQ(support::input_error_of([&] { mode.mode(); }),
            "--levels 2 is for packed responses, and --mode hint has none; take --mode packed, or "
            "leave --levels out");
  const LayoutOptions set = parsed("--levels 2 --params lwe-1572");
  EXPECT_THROW(set.mode(), UsageError);
  EXPECT_EQ(support::input_error_of([&] { set.mode(); }),
            "--levels 2 is for packed responses, and --params lwe-1572 has none; take --mode "
            "packed without --params, or leave --levels out");
}

TEST(LayoutOptions, RefuseAShortKeyWithoutTwoLevels) {
  for (const char* line : {"--short-key", "--short-key --levels 1", "--short-key --mode packed"}) {
    const LayoutOptions options = parsed(line);
    EXPECT_THROW(options.mode(), UsageError) << line;
    EXPECT_THAT(support::input_error_of([&] { options.mode(); }), HasSubstr("add --levels 2"))
        << line;
  }
}

TEST(LayoutOptions, SeveralKeysAreOfThePackedMode) {
  EXPECT_EQ(parsed("").batch(), std::nullopt);
  for (const char* also : {"", " --mode packed", " --params ring-2048", " --levels 1"}) {
    const LayoutOptions options = parsed("--keys-per-request 64" + std::string(also));
    EXPECT_EQ(options.mode(), Mode::kPacked) << also;
    EXPECT_EQ(options.batch(), (BatchCode{64, 96})) << also;
    BuildOptions build;
    options.apply_to(build);
    EXPECT_EQ(build.batch, (BatchCode{64, 96})) << also;
    EXPECT_FALSE(build.one_key) << also;
  }
  BuildOptions one;
  parsed("--keys-per-request 1 --levels 2").apply_to(one);
  EXPECT_EQ(one.batch, std::nullopt);
  EXPECT_TRUE(one.one_key);
  EXPECT_EQ(one.levels, 2u);
  for (const char* number : {"0", "1025", "-2"}) {
    EXPECT_THROW(parsed("--keys-per-request " + std::string(number)), CLI::ParseError) << number;
  }
}

TEST(LayoutOptions, RefuseSeveralKeysWithAnythingElse) {
  for (const auto& [also, error] : std::vector<std::pair<std::string, std::string>>{
           {"--index",
            "--keys-per-request is for keys that are byte strings, and --index makes a database of "
            "numbers; leave the one or the other out"},
           {"--mode hint",
            "--keys-per-request is for packed responses, and --mode hint has none; take --mode "
            "packed, or leave --keys-per-request out"},
           {"--params lwe-1572",
            "--keys-per-request is for packed responses, and --params lwe-1572 has none; leave "
            "--params out or take ring-2048, or leave --keys-per-request out"},
           {"--levels 2",
            "--keys-per-request is for packed responses of one level; leave --levels 2 out, or "
            "--keys-per-request"},
           {"--short-key",
            "--keys-per-request is for packed responses of one level; leave --short-key out, or "
            "--keys-per-request"},
           {"--levels 2 --short-key",
            "--keys-per-request is for packed responses of one level; leave --levels 2 and "
            "--short-key out, or --keys-per-request"}}) {
    const LayoutOptions options = parsed("--keys-per-request 16 " + also);
    EXPECT_THROW(options.mode(), UsageError) << also;
    EXPECT_EQ(support::input_error_of([&] { options.mode(); }), error);
  }
}

TEST(LayoutOptions, SayWhatTheDefaultsAre) {
  CLI::App command;
  LayoutOptions options;
  options.add_to(command);
  EXPECT_THAT(command.get_option("--params")->get_description(),
              HasSubstr("lwe-1774 for hint, ring-2048 for packed"));
}

}  // namespace
}  // namespace blindfuse
