#include "src/program/help_formatter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace blindfuse {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A program with one command that has an option of each kind.
class HelpFormatterTest : public ::testing::Test {
 protected:
  HelpFormatterTest() {
    format_help(program_);
    CLI::App* command = program_.add_subcommand("fill", "Fill a cup. Stops when it is full.");
    command->footer("Example:\n  teapot fill cup");
    command->add_option("cup", cup_, "What to fill")->required();
    command->add_flag("--hot", hot_, "Heat it");
    command->option_defaults()->group("Leaves");
    command->add_option("--leaves", leaves_, "Leaves a pot")
        ->check(CLI::Range(1u, 9u))
        ->envname("TEAPOT_LEAVES")
        ->capture_default_str();
    command->add_option("--kind", kind_, "Which tea")
        ->check(CLI::IsMember(std::vector<std::string>{"green", "black"}))
        ->required();
    command->add_option("--old", old_, "Not shown")->group("");
  }

  // What the program prints for these arguments instead of running.
  std::string help(const std::string& arguments) {
    std::ostringstream out;
    try {
      program_.parse(arguments);
    } catch (const CLI::Success& asked) {
      program_.exit(asked, out, out);
    }
    return out.str();
  }

  CLI::App program_{"Make tea.", "teapot"};
  std::string cup_, kind_, old_;
  unsigned leaves_ = 3;
  bool hot_ = false;
};

TEST_F(HelpFormatterTest, PutsGroupsFirstAndCommonOptionsLast) {
  EXPECT_EQ(help("fill --help"),
            "Fill a cup. Stops when it is full.\n"
            "\n"
            "Usage: teapot fill --kind green|black [OPTIONS] CUP\n"
            "\n"
            "Arguments:\n"
            "  CUP                     What to fill\n"
            "\n"
            "Leaves:\n"
            "  --leaves N              Leaves a pot (default: 3)\n"
            "  --kind green|black      Which tea (required)\n"
            "\n"
            "Other options:\n"
            "  --hot                   Heat it\n"
            "  -h, --help              Show this help\n"
            "  --help-all              Show all options, ranges and environment variables\n"
            "\n"
            "Example:\n"
            "  teapot fill cup\n");
}

TEST_F(HelpFormatterTest, NamesTheCommandsOfAProgram) {
  const std::string text = help("--help");
  EXPECT_THAT(text, HasSubstr("Usage: teapot COMMAND ...\n\nCommands:\n"
                              "  fill                    Fill a cup\n"));
  EXPECT_THAT(text, Not(HasSubstr("--leaves")));
}

TEST_F(HelpFormatterTest, HasRangesAndVariablesInTheLongForm) {
  const std::string page =
      "  --leaves N\n"
      "      Leaves a pot (default: 3)\n"
      "      [1 to 9; TEAPOT_LEAVES]\n"
      "  --kind green|black\n"
      "      Which tea (required)\n";
  EXPECT_THAT(help("fill --help-all"), HasSubstr(page));
  // Of the program: the pages of all commands.
  EXPECT_THAT(help("--help-all"), HasSubstr(page));
}

TEST_F(HelpFormatterTest, LeavesOutWhatFewNeedInTheShortForm) {
  CLI::App* command = program_.get_subcommand("fill");
  command->add_option("--water", leaves_, "Water")->group("Leaves" + std::string(kAdvanced));
  EXPECT_THAT(help("fill --help"), Not(HasSubstr("--water")));
  EXPECT_THAT(help("fill --help"), Not(HasSubstr("(advanced)")));
  EXPECT_THAT(help("fill --help-all"), HasSubstr("Leaves (advanced):\n  --water N\n"));
}

TEST_F(HelpFormatterTest, ShowsBytesInTheLargestUnit) {
  CLI::App* command = program_.get_subcommand("fill");
  uint64_t water = uint64_t{3} << 30, milk = 2048 + 1, sugar = 0;
  command->add_option("--water", water, "Water")->type_name("BYTES")->capture_default_str();
  command->add_option("--milk", milk, "Milk")->type_name("BYTES")->capture_default_str();
  command->add_option("--sugar", sugar, "Sugar")->type_name("BYTES")->capture_default_str();
  const std::string text = help("fill --help");
  EXPECT_THAT(text, HasSubstr("--water BYTES           Water (default: 3GiB)\n"));
  EXPECT_THAT(text, HasSubstr("Milk (default: 2049)\n"));
  EXPECT_THAT(text, HasSubstr("Sugar (default: 0)\n"));
}

TEST_F(HelpFormatterTest, BreaksLinesThatAreTooWide) {
  std::string words;
  for (int i = 0; i < 60; ++i) words += "word ";
  program_.get_subcommand("fill")->add_option("--a-name-that-is-longer-than-its-column", words);
  program_.get_subcommand("fill")->add_flag("--wide", hot_, words);
  for (const char* form : {"fill --help", "fill --help-all"}) {
    std::istringstream lines(help(form));
    size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
      EXPECT_LE(line.size(), HelpFormatter::kWidth) << line;
    }
    EXPECT_GT(count, 20u);
  }
}

}  // namespace
}  // namespace blindfuse
