// The command lines of both programs: what they refuse, and what they say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "tests/programs/program_testing.h"

namespace blindfuse::program_testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

const std::vector<Words> kCommands = {{kBlindfuse, "plan"},      {kBlindfuse, "build"},
                                      {kBlindfuse, "inspect"},   {kBlindfuse, "serve"},
                                      {kBlindfuse, "api-key"},   {kBlindfuse, "self-test"},
                                      {kBlindfuseClient, "get"}, {kBlindfuseClient, "sync"}};

class CommandLine : public ::testing::Test {
 protected:
  ProgramResult run(const Words& words, const Words& more = {}) const {
    return program_testing::run(folder_, words + more);
  }

  // The long options of a command, "--threads N", by the program's own help.
  Words options_of(const Words& command) const {
    std::istringstream help(run(command, {"--help-all"}).out);
    static const std::regex kOption(R"(  (?:-\w, )?(--[a-z-]+( \S+)?))");
    Words options;
    std::smatch found;
    for (std::string line; std::getline(help, line);) {
      if (std::regex_match(line, found, kOption)) options.push_back(found[1]);
    }
    EXPECT_GE(options.size(), 5u);
    return options;
  }

  static std::string variable_of(const std::string& option) {
    std::string name = "BLINDFUSE_" + option.substr(2);
    for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::toupper(c));
    return name;
  }

  const TemporaryFolder folder_;
};

// Of a script whose variable is not set: --api-keys "$KEYS" must not serve without keys.
TEST_F(CommandLine, NoOptionHasAnEmptyValue) {
  size_t count = 0;
  for (const Words& command : kCommands) {
    for (const std::string& option : options_of(command)) {
      const size_t space = option.find(' ');
      const std::string name = option.substr(0, space);
      if (name.starts_with("--help")) continue;
      SCOPED_TRACE(command[1] + " " + name);
      Words given = {name + "="};
      if (space != std::string::npos) given = {name, ""};
      for (const Words& more : {given, Words{name + "="}}) {
        const ProgramResult result = run(command, more);
        EXPECT_EQ(result.status, 2);
        EXPECT_THAT(result.err, HasSubstr(": " + name + " is empty: give it a value"));
        EXPECT_THAT(result.out, IsEmpty());
      }
      const std::string variable = variable_of(name);
      const ProgramResult result = run(Words{"env", variable + "="} + command);
      EXPECT_EQ(result.status, 2);
      EXPECT_THAT(result.err, HasSubstr(": the variable " + variable + " is empty"));
      ++count;
    }
  }
  EXPECT_GT(count, 80u);
}

TEST_F(CommandLine, AnOptionCountsMoreThanAnEmptyVariable) {
  const ProgramResult result =
      run({"env", "BLINDFUSE_FORMAT=", kBlindfuse, "build", "--format", "csv", "--help"});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(run({"env", "BLINDFUSE_OUTPUT=", kBlindfuse, "build", "--output", folder_ / "db",
                   folder_ / "none.tsv"})
                  .err,
              HasSubstr("none.tsv"));
}

TEST_F(CommandLine, VariablesOfOtherCommandsDoNotCount) {
  EXPECT_EQ(run({"env", "BLINDFUSE_THREADS=many", "BLINDFUSE_SIGN=", kBlindfuse, "keygen",
                 folder_ / "words.key"})
                .status,
            0);
  EXPECT_THAT(run({"env", "BLINDFUSE_THREADS=many", kBlindfuse, "inspect", folder_ / "db"}).err,
              StartsWith("blindfuse: BLINDFUSE_THREADS many: give a whole number from 0 to 1024"));
}

// An option whose value a shell left out must not take the next option for it.
TEST_F(CommandLine, TheNextOptionIsNoValue) {
  EXPECT_EQ(run({kBlindfuse, "serve", "db", "--api-keys", "--listen", "127.0.0.1:0"}).err,
            "blindfuse: --api-keys has no value: --listen follows\n");
  EXPECT_EQ(run({kBlindfuse, "build", "a.tsv", "--output"}).err,
            "blindfuse: --output has no value: give DIR\n");
  EXPECT_EQ(run({kBlindfuse, "build", "a.tsv", "--threads"}).err,
            "blindfuse: --threads has no value: give a whole number from 0 to 1024\n");
}

// The program's name, what is wrong, and a cure.
TEST_F(CommandLine, SaysWhatIsWrongAndTheCure) {
  const std::string usage = "usage: blindfuse build --output DIR [OPTIONS] INPUT...";
  const std::string lists = "`blindfuse build --help-all` lists the options";
  const std::vector<std::pair<Words, std::string>> cases = {
      {{"build"}, "missing INPUT... and --output DIR; " + usage},
      {{"build", "a.tsv", "--ouput", "db"},
       "there is no option --ouput; " + lists + "; did you mean --output?"},
      {{"build", "a.tsv", "--output", "db", "--frobnicate=x"},
       "there is no option --frobnicate; " + lists},
      {{"build", "a.tsv", "--output", "db", "-x"}, "there is no option -x; " + lists},
      {{"build", "a.tsv", "--output", "db", "--mode", "hnit"},
       "--mode hnit: give auto, hint or packed; did you mean hint?"},
      {{"build", "a.tsv", "--output", "db", "--arity", "5"}, "--arity 5: give 3 or 4"},
      {{"build", "a.tsv", "--output", "db", "--threads", "-1"},
       "--threads -1: give a whole number from 0 to 1024"},
      {{"build", "a.tsv", "--output", "db", "--json=maybe"}, "--json maybe: give true or false"},
      {{"build", "a.tsv", "--output", "db", "--output", "db2"},
       "--output db, db2: give one value; one with spaces needs quotes"},
      {{"build", "a.tsv", "--output", "db", "--sign", folder_ / "key", "--unsigned"},
       "--sign and --unsigned contradict each other; leave one of them out"},
      {{"build", "a", "--output", "b", "--format", "xml"},
       "--format xml: give csv, ndjson, sqlite or tsv"},
      {{"serve", "a", "--log-format", "xml"}, "--log-format xml: give json or text"},
      {{"serve", "db", "db2"},
       "one argument too many: db2; usage: blindfuse serve [OPTIONS] [DIRECTORY]"},
      {{"--version=false", "serve", "db", "--api-keys", ""},
       "--api-keys is empty: give it a value, or leave it out"},
      {{"inspect", "db", "first", "second"},
       "one argument too many: first; usage: blindfuse inspect [OPTIONS] DIRECTORY"},
      {{"biuld"},
       "there is no command \"biuld\"; there are plan, build, inspect, serve, keygen, api-key and "
       "self-test; did you mean build?"},
      {{"plan", "--keys", "1x", "--value-bytes", "8"},
       "--keys 1x: give a whole number from 1 to 4294967296, such as 250000, 250k or 1M"},
      {{"plan", "--keys", "1k", "--value-bytes", "4X"},
       "--value-bytes 4X: give a number of bytes from 0 to 131072, such as 64000000, 64M (powers "
       "of 1000) or 64MiB (powers of 1024)"},
      // Escape sequences would drive the terminal.
      {{"serve", "db", "--\x1b[31m"},
       "there is no option --\\x1b[31m; `blindfuse serve --help-all` lists the options"},
  };
  write_file(folder_ / "key", "");
  for (const auto& [words, message] : cases) {
    const ProgramResult result = run(Words{kBlindfuse} + words);
    EXPECT_EQ(result.err, "blindfuse: " + message + "\n");
    EXPECT_EQ(result.status, 2) << message;
    EXPECT_THAT(result.out, IsEmpty()) << message;
  }
  EXPECT_THAT(run({kBlindfuse}).err, StartsWith("blindfuse: missing COMMAND; there are plan, "));
  EXPECT_THAT(run({kBlindfuseClient, "get"}).err,
              StartsWith("blindfuse-client: missing URL; usage: blindfuse-client get "));
}

TEST_F(CommandLine, HelpIsShownWhateverElseIsWrong) {
  const Words variables = {"env", "BLINDFUSE_THREADS=many", "BLINDFUSE_SIGN=/none",
                           "BLINDFUSE_API_KEYS="};
  const auto with_variables = [&](const Words& more) {
    const ProgramResult result = run(variables, more);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  };
  EXPECT_THAT(with_variables({kBlindfuse, "--help"}), HasSubstr("Usage: blindfuse COMMAND"));
  EXPECT_THAT(with_variables({kBlindfuse, "--help-all"}), HasSubstr("BLINDFUSE_API_KEYS"));
  EXPECT_THAT(with_variables({kBlindfuse, "--version"}), StartsWith("blindfuse 0."));
  EXPECT_THAT(with_variables({kBlindfuse, "serve", "--help"}), HasSubstr("Usage: blindfuse serve"));
  EXPECT_THAT(with_variables({kBlindfuse, "build", "--help-all", "--shards", "x"}),
              HasSubstr("BLINDFUSE_SHARDS"));
  EXPECT_THAT(with_variables({kBlindfuse, "help", "build"}), HasSubstr("Usage: blindfuse build"));
}

// Each names its cure, on the command line, in the environment and in a configuration.
TEST_F(CommandLine, RemovedOptionsNameTheCure) {
  const std::vector<std::pair<Words, std::string>> cases = {
      {{"--prefer", "bytes"}, "--prefer any more; `blindfuse plan` shows the options of layouts"},
      {{"--rates", "x.json"}, "--rates any more; times are those of the machine that plans"},
      {{"--calibrate"}, "--calibrate any more; `blindfuse plan` measures the rates"},
  };
  for (const auto& [words, message] : cases) {
    for (const Words& command : {Words{kBlindfuse, "plan", "--keys", "5", "--value-bytes", "5"},
                                 Words{kBlindfuse, "build", "a.tsv", "--output", "db"}}) {
      const ProgramResult result = run(command, words);
      EXPECT_EQ(result.status, 2) << message;
      EXPECT_THAT(result.err, HasSubstr("blindfuse: there is no option " + message));
      EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
    }
    EXPECT_THAT(run({kBlindfuse, "build", "--help-all"}).out, Not(HasSubstr(words.front() + "\n")));
  }
  EXPECT_THAT(run({"env", "BLINDFUSE_PREFER=speed", kBlindfuse, "plan", "a.tsv"}).err,
              HasSubstr("there is no option --prefer any more"));
  const std::string gone = "there is no option --metrics-listen any more; --admin-listen takes its";
  EXPECT_THAT(run({kBlindfuse, "serve", "db", "--metrics-listen", "127.0.0.1:0"}).err,
              HasSubstr(gone));
  const std::string config = write_file(folder_ / "c.conf", "metrics-listen = \"127.0.0.1:0\"\n");
  EXPECT_THAT(run({kBlindfuse, "serve", "db", "--config", config}).err, HasSubstr(gone));
}

TEST_F(CommandLine, FormerNamesOfOptionsWorkWithAWarning) {
  const std::string input = write_file(folder_ / "a.ndjson", "{\"k\": \"a\", \"v\": \"1\"}\n");
  const Words former = {"--key-field", "k", "--value-field", "v"};
  const ProgramResult result = run({kBlindfuse, "plan", input}, former);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("--key-field is now --key-column; the next release"),
                    HasSubstr("--value-field is now --value-column; the next release")));
  EXPECT_EQ(run({"env", "BLINDFUSE_KEY_FIELD=k", kBlindfuse, "plan", input, "--value-column", "v"})
                .status,
            0);
  const ProgramResult both = run({kBlindfuse, "plan", input, "--key-column", "k"}, former);
  EXPECT_EQ(both.status, 2);
  EXPECT_THAT(both.err,
              HasSubstr("--key-field is the former name of --key-column; give the latter"));
  EXPECT_THAT(run({kBlindfuse, "plan", "--help-all"}).out, Not(HasSubstr("--key-field")));
}

// Which option names the file that is not there.
TEST_F(CommandLine, AnOptionNamesItsFile) {
  const std::string none = folder_ / "none";
  const std::vector<std::pair<Words, std::string>> cases = {
      {{kBlindfuse, "serve", "db", "--api-keys", none}, "--api-keys"},
      {{kBlindfuse, "serve", "db", "--tls-cert", none, "--tls-key", none}, "--tls-cert"},
      {{kBlindfuse, "serve", "db", "--config", none}, "--config"},
      {{kBlindfuse, "build", "a.tsv", "--output", "db", "--sign", none}, "--sign"},
      {{kBlindfuseClient, "get", "http://127.0.0.1:1", "k", "--ca-file", none}, "--ca-file"},
      {{kBlindfuseClient, "get", "http://127.0.0.1:1", "k", "--api-key-file", none},
       "--api-key-file"},
  };
  for (const auto& [words, option] : cases) {
    const ProgramResult result = run(words);
    EXPECT_EQ(result.status, 1) << option;
    EXPECT_THAT(result.err,
                HasSubstr(": " + option + ": cannot open " + none + ": No such file or directory"));
  }
}

TEST_F(CommandLine, AServerKeyIsNoFile) {
  const std::string file = write_file(folder_ / "words.key", "x");
  const ProgramResult result =
      run({kBlindfuseClient, "get", "http://127.0.0.1:1", "k", "--server-key", file});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, StartsWith("blindfuse-client: --server-key " + file +
                                     ": it is a file; give the public key itself"));
}

TEST_F(CommandLine, ListenersHaveAddressesOfTheirOwn) {
  for (const std::string& address :
       {std::string("127.0.0.1:8080"), "unix:" + (folder_ / "socket").string()}) {
    const ProgramResult result =
        run({kBlindfuse, "serve", folder_ / "db", "--listen", address, "--admin-listen", address});
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(result.err, "blindfuse: --listen and --admin-listen are both " + address +
                              ": give the admin listener another port or socket\n");
  }
  // Two free ports.
  EXPECT_THAT(run({kBlindfuse, "serve", folder_ / "db", "--listen", "127.0.0.1:0", "--admin-listen",
                   "127.0.0.1:0"})
                  .err,
              Not(HasSubstr("--listen")));
}

TEST_F(CommandLine, HelpFitsATerminal) {
  std::vector<Words> pages = kCommands;
  pages.insert(pages.end(), {{kBlindfuse}, {kBlindfuseClient}, {kBlindfuse, "keygen"}});
  for (const Words& command : pages) {
    std::istringstream help(run(command, {"--help"}).out);
    for (std::string line; std::getline(help, line);) EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST_F(CommandLine, TheVersionSaysWhatIsBuiltIn) {
  const std::string version = run({kBlindfuse, "--version"}).out;
  EXPECT_THAT(version, StartsWith("blindfuse 0."));
  for (const char* line :
       {"\ncommit ", "\npage for browsers: ", "\nCUDA: ", "\nengines: cpu, cpu:"}) {
    EXPECT_THAT(version, HasSubstr(line));
  }
  EXPECT_THAT(run({kBlindfuseClient, "--version"}).out,
              AllOf(StartsWith("blindfuse-client 0."), HasSubstr("\ncommit ")));
}

}  // namespace
}  // namespace blindfuse::program_testing
