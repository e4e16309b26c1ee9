#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "src/program/help_formatter.h"
#include "src/program/printable.h"

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

TEST(Amount, BytesHaveThreeDigits) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1'000), "1.00 kB");
  EXPECT_EQ(human_bytes(12'345), "12.3 kB");
  EXPECT_EQ(human_bytes(123'456'789), "123.5 MB");
  EXPECT_EQ(human_bytes(5'000'000'000'000'000), "5000.0 TB");
}

TEST(Amount, CountsHaveNoUnit) {
  EXPECT_EQ(human_count(999), "999");
  EXPECT_EQ(human_count(27'412'000), "27.4M");
}

TEST(Amount, OneOfAKindIsSingular) {
  EXPECT_EQ(counted(0, "key"), "0 keys");
  EXPECT_EQ(counted(1, "key"), "1 key");
  EXPECT_EQ(counted(2, "look-up"), "2 look-ups");
}

using namespace std::string_view_literals;

TEST(Printable, ShowsPrintableTextAsItIs) {
  EXPECT_EQ(printable("key = \xC3\xA9, \xE2\x82\xAC, \xF0\x9F\x98\x80"),
            "key = \xC3\xA9, \xE2\x82\xAC, \xF0\x9F\x98\x80");
}

TEST(Printable, EscapesWhatIsNotPrintable) {
  EXPECT_EQ(printable("a\0b\n\r\t\x1B[2J\x7F"sv), "a\\x00b\\x0a\\x0d\\x09\\x1b[2J\\x7f");
  EXPECT_EQ(printable("\xFF\xC3"), "\\xff\\xc3") << "not UTF-8";
  EXPECT_EQ(printable("\xC2\x9B"), "\\xc2\\x9b") << "a C1 control character";
  EXPECT_EQ(printable("\xE2\x80\xAE"), "\\xe2\\x80\\xae") << "right-to-left override";
  EXPECT_EQ(printable("\xE2\x80\xA8"), "\\xe2\\x80\\xa8") << "line separator";
  EXPECT_EQ(printable("\xEF\xBB\xBF"), "\\xef\\xbb\\xbf") << "byte order mark";
}

TEST(Printable, CutsLongTextBetweenCharacters) {
  EXPECT_EQ(printable(std::string(60, 'a')), std::string(60, 'a'));
  EXPECT_EQ(printable(std::string(61, 'a')), std::string(60, 'a') + "...");
  EXPECT_EQ(printable("\xC3\xA9\xC3\xA9", 3), "\xC3\xA9...");
  EXPECT_EQ(printable(std::string(100, '\n'), 10), "\\x0a\\x0a...");
  EXPECT_EQ(quoted("abc", 2), "\"ab...\"");
}

}  // namespace
}  // namespace blindfuse
