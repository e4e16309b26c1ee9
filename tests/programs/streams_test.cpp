// What goes to the standard streams, and what does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/programs/program_testing.h"

namespace blindfuse::program_testing {
namespace {

using ::testing::HasSubstr;
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
