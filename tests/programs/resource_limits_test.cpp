// `blindfuse build` and `inspect` where memory, threads or files are not what they hope for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "tests/programs/program_testing.h"

namespace blindfuse::program_testing {
namespace {

using ::testing::HasSubstr;

// A million copies of a key took 200 MB when they were all in memory at once.
TEST(ResourceLimits, TakesNoMoreMemoryForAKeyThatComesOften) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers reserve terabytes of addresses";
#endif
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 1'000'000; ++i) lines += "hot\tv\n";
  const std::string input = write_file(folder / "a.tsv", lines);
  const auto build_with = [&](const char* policy) {
    return run(folder, {"sh", "-c", "ulimit -v 120000; exec \"$@\"", "sh", kBlindfuse, "build",
                        input, "--output", folder / "db", "--on-duplicate", policy, "--threads",
                        "1", "--engine", "cpu"});
  };
  const ProgramResult refused = build_with("error");
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("the key \"hot\" comes twice: "));
  for (const char* policy : {"first", "last"}) {
    const ProgramResult built = build_with(policy);
    EXPECT_EQ(built.status, 0) << built.err;
    EXPECT_THAT(built.err, HasSubstr("came twice: 999999"));
  }
}

// Stacks take addresses: a limit on those stands for one on threads, from which root is exempt.
TEST(ResourceLimits, NamesTheCureWhenThereAreNoMoreThreads) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers reserve terabytes of addresses";
#endif
  const TemporaryFolder folder;
  const std::string input = write_file(folder / "a.tsv", "a\tb\n");
  const ProgramResult result =
      run(folder, {"sh", "-c", "ulimit -s 8192; ulimit -v 1000000; exec \"$@\"", "sh", kBlindfuse,
                   "build", input, "--output", folder / "db", "--threads", "1000"});
  EXPECT_EQ(result.status, 1);
  for (const char* part :
       {"cannot start 1000 threads, only ", "ulimit -u", "TasksMax", "ulimit -v", "--threads"}) {
    EXPECT_THAT(result.err, HasSubstr(part));
  }
  EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "db"));
}

// Before it takes long to load anything.
TEST(ResourceLimits, SaysWhereFilesAreTooFewForTheConnections) {
  const TemporaryFolder folder;
  const auto serve = [&](const char* limit, const char* connections) {
    return run(folder,
               {"sh", "-c", "ulimit -S -n 100; ulimit -H -n \"$1\"; shift; exec \"$@\"", "sh",
                limit, kBlindfuse, "serve", folder / "nowhere", "--connections-max", connections})
        .err;
  };
  EXPECT_THAT(serve("500", "1000"),
              HasSubstr("may have 500 files open, too few for --connections-max 1000: raise its "
                        "limit to 1164 (LimitNOFILE of a systemd unit, ulimit -n)"));
  EXPECT_THAT(serve("500", "300"), ::testing::Not(HasSubstr("files open")))
      << "it takes what the hard limit leaves it";
}

// Of each call that opens a file, one limit lets it be the one that fails.
TEST(ResourceLimits, LeavesNothingWhereFilesAreTooFew) {
  const TemporaryFolder folder;
  const std::string input = write_file(folder / "a.tsv", "a\tb\n");
  for (int limit = 4; limit <= 24; ++limit) {
    std::filesystem::remove_all(folder / "db");
    const ProgramResult result = run(
        folder, {"sh", "-c", "ulimit -n \"$1\"; shift; exec \"$@\"", "sh", std::to_string(limit),
                 kBlindfuse, "build", input, "--output", folder / "db", "--threads", "1"});
    // Above the limits that count, or below: the loader found no room for a shared library.
    if (result.status == 0 || result.status == 127) continue;
    EXPECT_THAT(result.err, HasSubstr("Too many open files")) << limit;
    EXPECT_FALSE(std::filesystem::exists(folder / "db")) << limit << result.err;
  }
}

// Opening one for reading waits for a program that writes to it.
TEST(ResourceLimits, DoesNotWaitForANamedPipeInTheDirectory) {
  const TemporaryFolder folder;
  const std::string input = write_file(folder / "a.tsv", "a\tb\n");
  ASSERT_EQ(run(folder, {kBlindfuse, "build", input, "--output", folder / "db"}).status, 0);
  const auto inspect_with_pipe_at = [&](const std::filesystem::path& path) {
    std::filesystem::remove(path);
    EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
    return run(folder, {kBlindfuse, "inspect", folder / "db", "--verify"});
  };
  const auto matrix = std::filesystem::directory_iterator(folder / "db" / "shards")->path();
  for (const std::filesystem::path& path : {matrix, folder / "db" / "manifest.json"}) {
    const ProgramResult result = inspect_with_pipe_at(path);
    EXPECT_EQ(result.status, 1) << path;
    EXPECT_THAT(result.err, HasSubstr(path.string() + ": not a file"));
  }
}

// What goes to the standard streams, and what does not.
using ::testing::Not;

// A key in an error is printable by itself; a name is what anybody gave a file.
TEST(Streams, ErrorsDoNotDriveTheTerminal) {
  const TemporaryFolder folder;
  const std::string input = write_file(folder / "\x1b[31m\n.tsv", "k\tv\nk\tw\n");
  const ProgramResult duplicate =
      run(folder, {kBlindfuse, "build", input, "--output", folder / "db"});
  EXPECT_THAT(duplicate.err, HasSubstr("\\x1b[31m\\x0a.tsv, line 2"));
  std::filesystem::create_directory(folder / "other");
  write_file(folder / "other" / "\x1b]0;title\a\n", "");
  const ProgramResult foreign =
      run(folder, {kBlindfuse, "build", input, "--output", folder / "other"});
  EXPECT_THAT(foreign.err, HasSubstr("\\x1b]0;title\\x07\\x0a"));
  for (const ProgramResult& result : {duplicate, foreign}) {
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
    EXPECT_THAT(result.err, Not(HasSubstr("\x1b")));
  }
}

// A file that gets the number of a closed stream would be written into.
TEST(Streams, AreNotFilesWhenTheyAreClosed) {
  const TemporaryFolder folder;
  const std::string input = write_file(folder / "a.tsv", "k\tv\n");
  const ProgramResult result = run(folder, {"sh", "-c", "exec \"$@\" <&- >&- 2>&-", "sh",
                                            kBlindfuse, "build", input, "--output", folder / "db"});
  EXPECT_EQ(result.status, 1) << "standard output cannot be written to";
  EXPECT_EQ(read_whole(folder / "db" / ".lock"), "");
  EXPECT_EQ(look_up(load(folder / "db"), "k"), "v");
}

}  // namespace
}  // namespace blindfuse::program_testing
