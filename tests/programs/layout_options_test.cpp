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

using ::testing::HasSubstr;

LayoutOptions parsed(const std::string& line) {
  CLI::App command;
  LayoutOptions options;
  options.add_to(command);
  command.parse(line);
  return options;
}

TEST(LayoutOptions, TakeAModeAndASet) {
  const std::optional<Mode> open, hint = Mode::kHint, packed = Mode::kPacked;
  for (const auto& [line, mode] : {std::pair("", open),
                                   {"--mode auto", open},
                                   {"--mode hint", hint},
                                   {"--mode packed", packed},
                                   {"--params lwe-1572", hint},
                                   {"--params lwe-1572 --mode auto", hint},
                                   {"--params lwe-1572 --mode hint", hint},
                                   {"--params ring-2048", packed},
                                   {"--mode packed --params ring-2048", packed},
                                   {"--levels 2", packed},
                                   {"--levels 2 --short-key --mode packed", packed},
                                   {"--levels 2 --params ring-2048", packed},
                                   {"--levels 1", open},
                                   {"--levels 1 --mode hint", hint}}) {
    EXPECT_EQ(parsed(line).mode(), mode) << line;
  }
  EXPECT_EQ(parsed("--mode packed").lwe(), nullptr);
  EXPECT_EQ(parsed("--params lwe-1572").lwe(), find_lwe_params("lwe-1572"));
  EXPECT_THROW(parsed("--mode ring"), CLI::ValidationError);
  EXPECT_THROW(parsed("--levels 3"), CLI::ValidationError);
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

TEST(LayoutOptions, RefuseContradictions) {
  const std::string keys = "--keys-per-request 16 ";
  for (const auto& [line, error] : std::vector<std::pair<std::string, std::string>>{
           {"--mode packed --params lwe-1774", "--mode packed and --params lwe-1774"},
           {"--mode packed --params lwe-1774", "lwe-1774 is for --mode hint"},
           {"--mode packed --params lwe-1774", "takes ring-2048"},
           {"--mode hint --params ring-2048", "ring-2048 is for --mode packed"},
           {"--mode hint --params ring-2048", "takes lwe-1774, lwe-1572, lwe-1288"},
           {"--levels 2 --mode hint",
            "--levels 2 is for packed responses, and --mode hint has none; take --mode packed, or "
            "leave --levels out"},
           {"--levels 2 --params lwe-1572",
            "--levels 2 is for packed responses, and --params lwe-1572 has none; take --mode "
            "packed without --params, or leave --levels out"},
           {"--short-key", "add --levels 2"},
           {"--short-key --levels 1", "add --levels 2"},
           {"--short-key --mode packed", "add --levels 2"},
           {keys + "--index",
            "--keys-per-request is for keys that are byte strings, and --index makes a database of "
            "numbers; leave the one or the other out"},
           {keys + "--mode hint",
            "--keys-per-request is for packed responses, and --mode hint has none; take --mode "
            "packed, or leave --keys-per-request out"},
           {keys + "--params lwe-1572",
            "--keys-per-request is for packed responses, and --params lwe-1572 has none; leave "
            "--params out or take ring-2048, or leave --keys-per-request out"},
           {keys + "--levels 2",
            "--keys-per-request is for packed responses of one level; leave --levels 2 out, or "
            "--keys-per-request"},
           {keys + "--levels 2 --short-key",
            "--keys-per-request is for packed responses of one level; leave --levels 2 and "
            "--short-key out, or --keys-per-request"}}) {
    const LayoutOptions options = parsed(line);
    EXPECT_THROW(options.mode(), UsageError) << line;
    EXPECT_THAT(support::input_error_of([&] { options.mode(); }), HasSubstr(error)) << line;
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
