#include "src/program/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "src/base/errors.h"
#include "tests/publish/builder_testing.h"

namespace blindfuse {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A command like those of the program, within one.
struct Options {
  std::string directory;
  unsigned threads = 4;
  std::vector<std::string> origins;
  std::string level = "info";
  bool verbose = false;
};

class ConfigFile : public ::testing::Test {
 protected:
  static constexpr char kVariable[] = "BLINDFUSE_TEST_THREADS";

  ~ConfigFile() override { unsetenv(kVariable); }

  void write(const std::string& text) const { std::ofstream(path(), std::ios::binary) << text; }
  std::string path() const { return folder_ / "config"; }

  static Options parse(std::vector<std::string> arguments) {
    Options options;
    CLI::App program("", "program");
    program.require_subcommand(1);
    CLI::App* command = program.add_subcommand("serve", "");
    add_config_option(*command);
    command->add_option("directory", options.directory, "");
    command->add_option("--threads", options.threads, "")
        ->check(CLI::Range(1u, 64u))
        ->envname(kVariable);
    command->add_option("--cors-origin", options.origins, "");
    command->add_option("--log-level", options.level, "")->check(CLI::IsMember({"info", "error"}));
    command->add_flag("--verbose", options.verbose, "");
    arguments.insert(arguments.begin(), "serve");
    std::reverse(arguments.begin(), arguments.end());
    program.parse(arguments);
    return options;
  }
  Options parse_file(const std::string& text) const {
    write(text);
    return parse({"--config", path()});
  }
  std::string refusal(const std::string& text) const {
    try {
      parse_file(text);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  }

  const builder_testing::TemporaryFolder folder_;
};

TEST_F(ConfigFile, MayBeginWithAByteOrderMark) {
  EXPECT_EQ(parse_file("\xef\xbb\xbfthreads = 8\n").threads, 8u);
}

TEST_F(ConfigFile, HasOptions) {
  const Options options = parse_file(
      "# a comment\n"
      "; another\n"
      "\n"
      "directory = /srv/words\n"
      "  threads=8  \n"
      "log-level = \"error\"\n"
      "verbose = true\n");
  EXPECT_EQ(options.directory, "/srv/words");
  EXPECT_EQ(options.threads, 8u);
  EXPECT_EQ(options.level, "error");
  EXPECT_TRUE(options.verbose);
}

TEST_F(ConfigFile, MayBeEmpty) {
  const Options options = parse_file("");
  EXPECT_EQ(options.threads, 4u);
  EXPECT_EQ(options.level, "info");
}

TEST_F(ConfigFile, CountsLessThanTheEnvironmentAndTheCommandLine) {
  write("threads = 8\nlog-level = error\n");
  EXPECT_EQ(parse({"--config", path()}).threads, 8u);
  setenv(kVariable, "16", 1);
  EXPECT_EQ(parse({"--config", path()}).threads, 16u);
  EXPECT_EQ(parse({"--config", path(), "--threads", "32"}).threads, 32u);
  EXPECT_EQ(parse({"--threads", "32", "--config", path()}).threads, 32u) << "in any order";
  EXPECT_EQ(parse({"--config", path(), "--log-level", "info"}).level, "info")
      << "also when it says what the default is";
  EXPECT_EQ(parse({"here", "--config", path()}).directory, "here");
}

TEST_F(ConfigFile, TurnsFlagsOnAndOff) {
  for (const char* on : {"true", "1", "on", "yes"}) {
    EXPECT_TRUE(parse_file("verbose = " + std::string(on) + "\n").verbose) << on;
  }
  for (const char* off : {"false", "0", "off", "no"}) {
    EXPECT_FALSE(parse_file("verbose = " + std::string(off) + "\n").verbose) << off;
  }
  EXPECT_NE(refusal("verbose = perhaps\n"), "");
}

TEST_F(ConfigFile, HasLists) {
  EXPECT_THAT(parse_file("cors-origin = https://one.example\n").origins,
              ElementsAre("https://one.example"));
  EXPECT_THAT(
      parse_file("cors-origin = [\"https://one.example\", \"https://two.example\"]\n").origins,
      ElementsAre("https://one.example", "https://two.example"));
  write("cors-origin = https://one.example\n");
  EXPECT_THAT(parse({"--config", path(), "--cors-origin", "https://two.example"}).origins,
              ElementsAre("https://two.example"))
      << "the command line replaces it";
}

TEST_F(ConfigFile, RefusesWhatTheCommandDoesNotHave) {
  EXPECT_THAT(refusal("treads = 8\n"), HasSubstr(path()));
  EXPECT_THAT(refusal("treads = 8\n"), HasSubstr("\"treads\""));
  EXPECT_THAT(refusal("config = other\n"), HasSubstr("\"config\"")) << "no file leads to another";
  EXPECT_THAT(refusal("help = true\n"), HasSubstr("help"));
  EXPECT_THAT(refusal("[serve]\nthreads = 8\n"), HasSubstr(path()));
  EXPECT_THAT(refusal("[other]\nthreads = 8\n"), HasSubstr("other"));
  EXPECT_THAT(refusal("other.threads = 8\n"), HasSubstr("other"));
}

TEST_F(ConfigFile, SaysInWhichLineAreSectionsAndOpenQuotes) {
  EXPECT_THAT(refusal("threads = 8\n\n[serve]\nverbose = true\n"),
              AllOf(HasSubstr(path() + ", line 3:"), HasSubstr("sections"), HasSubstr("[serve]")));
  for (const char* line :
       {"log-level = \"info", "log-level = 'info", "log-level = \"info # no end\"",
        "cors-origin = [\"https://one.example\", \"https://two.example]",
        "cors-origin = [\"https://one.example\",\n\"https://two.example]"}) {
    EXPECT_THAT(refusal("# first\n" + std::string(line) + "\n"),
                AllOf(HasSubstr(path() + ", line "), HasSubstr("quote is not closed")))
        << line;
  }
}

TEST_F(ConfigFile, RefusesLinesWithoutAValue) {
  EXPECT_THAT(refusal("threads = 8\nverbose\n"),
              AllOf(HasSubstr(path() + ", line 2:"), HasSubstr("there is no = in \"verbose\"")));
  EXPECT_THAT(refusal("cors-origin https://one.example\n"), HasSubstr("there is no = in"));
  for (const char* line :
       {"directory =", "directory = \"\"", "threads = ", "verbose =", "cors-origin = []",
        "cors-origin = [\"https://one.example\", \"\"]", "directory = # none"}) {
    EXPECT_THAT(refusal(std::string(line) + "\n"),
                AllOf(HasSubstr(path() + ": "), HasSubstr(" is empty: give it a value")))
        << line;
  }
}

TEST_F(ConfigFile, SuggestsTheNearestName) {
  EXPECT_THAT(refusal("treads = 8\n"),
              AllOf(HasSubstr("\"treads\""), HasSubstr("; did you mean threads?")));
  EXPECT_THAT(refusal("log_level = info\n"), HasSubstr("did you mean log-level?"));
  EXPECT_THAT(refusal("frobnicate = 8\n"), Not(HasSubstr("did you mean")));
}

TEST_F(ConfigFile, HasQuotesAndBracketsWhereTheyBelong) {
  EXPECT_EQ(parse_file("directory = /srv/bob's\n").directory, "/srv/bob's");
  EXPECT_EQ(parse_file("directory = \"/srv/bob's words\" # it's his\n").directory,
            "/srv/bob's words");
  EXPECT_THAT(parse_file("# [section]\ncors-origin = [\"https://one.example\",\n"
                         "  \"https://two.example\"]\nthreads = 8\n")
                  .origins,
              ElementsAre("https://one.example", "https://two.example"));
}

TEST_F(ConfigFile, RefusesValuesThatAreWrong) {
  for (const char* line :
       {"threads = 0", "threads = 65", "threads = many", "threads = -1", "log-level = loud"}) {
    const std::string refused = refusal(std::string(line) + "\n");
    EXPECT_THAT(refused, HasSubstr(path())) << line;
    EXPECT_THAT(refused, HasSubstr(std::string(line).substr(0, std::string(line).find(' '))));
  }
}

TEST_F(ConfigFile, RefusesAFileThatCannotBeRead) {
  for (const std::string& file : {(folder_ / "nowhere").string(), folder_.path().string()}) {
    try {
      parse({"--config", file});
      FAIL() << file;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr(file));
    }
  }
  write(std::string(2 << 20, '#'));
  EXPECT_THROW(parse({"--config", path()}), InputError) << "sizes are checked first";
}

TEST_F(ConfigFile, SurvivesNonsense) {
  for (const std::string& text :
       {std::string("="), std::string("[[["), std::string("]"), std::string("\"\"\""),
        std::string("a = [\"b"), std::string("\0\0\0", 3), std::string("\xff\xfe"),
        std::string(1000, '['), "threads = " + std::string(10'000, '9')}) {
    write(text);
    try {
      parse({"--config", path()});
    } catch (const InputError&) {
    } catch (const CLI::Error&) {
    }
  }
}

}  // namespace
}  // namespace blindfuse
