// What blindfuse-client prints, and when: on a terminal, into pipes without a reader, and on disks
// that are full.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/client/client_program.h"
#include "tests/client/packed_database.h"
#include "tests/client/watched_fake_server.h"

namespace blindfuse {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(ClientProgram, SaysOnATerminalThatItReadsKeys) {
  const std::string told = "keys from standard input, one a line";
  EXPECT_EQ(run("get " + http_.url()).err, "");
  const Outcome got =
      run_command("script -qec '" + program() + " get " + http_.url() + "' /dev/null </dev/null");
  ASSERT_EQ(got.status, 0);
  EXPECT_THAT(got.out, HasSubstr(told));
}

// A server chooses values, and keys may come from anybody.
TEST_F(ClientProgram, DrivesNoTerminal) {
  const std::string value =
      "hot\x1b]0;title\x07\n\xc2\x9b"
      "31m \xc3\xa4";
  FakeServer fake(BatchDatabase::serve({{"tea", value}, {"a\x1b[2J", "x"}}));
  HttpFakeServer server(fake);
  const std::string escaped = "hot\\x1b]0;title\\x07\\x0a\\xc2\\x9b31m \xc3\xa4";
  const std::string keys = "tea\na\x1b[2J\nno\x1b[2Jkey\n";

  EXPECT_EQ(run("get " + server.url() + " tea").out, value + "\n");
  const Outcome piped = run("get " + server.url(), keys);
  EXPECT_EQ(piped.out, "tea\t" + value + "\na\x1b[2J\tx\n");
  EXPECT_EQ(piped.err, "not there: no\x1b[2Jkey\n");
  EXPECT_EQ(json_lines(run("get --json " + server.url() + " tea").out).at(0)["value"], value);

  EXPECT_EQ(run_on_terminal("get " + server.url() + " tea"), escaped + "\r\n");
  EXPECT_EQ(run_on_terminal("get " + server.url(), keys),
            "tea\t" + escaped + "\r\na\\x1b[2J\tx\r\nnot there: no\\x1b[2Jkey\r\n");
  const std::string json = run_on_terminal("get --json " + server.url() + " tea");
  EXPECT_EQ(json_lines(json).at(0)["value"], value);
  EXPECT_THAT(json, Not(HasSubstr("\x1b")));
  EXPECT_THAT(json, Not(HasSubstr("\x9b")));
}

// The end of the connection would show how long printing takes, and so whether a key is there, and
// how long its value is.
TEST_F(ClientProgram, ClosesItsConnectionBeforeItPrints) {
  WatchedFakeServer server(fake_);
  run("sync " + server.url());
  for (const std::string& arguments : {key(10), std::string("nowhere"), key(10) + " " + key(11),
                                       "--json " + key(10), std::string("--json nowhere")}) {
    SCOPED_TRACE(arguments);
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    const FileDescriptor read_end(ends[0]);
    FileDescriptor write_end(ends[1]);
    while (write(write_end.get(), "full", 4) > 0 || write(write_end.get(), "f", 1) > 0) {
    }
    ASSERT_EQ(fcntl(write_end.get(), F_SETFL, 0), 0);
    // Both streams go nowhere: the program waits in its first write.
    const std::string command = "exec env " + program() + " get " + server.url() + " " + arguments;
    const pid_t child = fork();
    if (child == 0) {
      dup2(write_end.get(), STDOUT_FILENO);
      dup2(write_end.get(), STDERR_FILENO);
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
    EXPECT_TRUE(server.has_seen_end());
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, WNOHANG), 0) << "it has ended without printing";
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
  }
}

TEST_F(ClientProgram, AFailedWriteIsAFailure) {
  const std::string get = "get " + http_.url() + " ";
  for (const std::string& arguments :
       {get + key(6), get + key(6) + " nowhere", get + "--json nowhere", get + "--json " + key(6),
        "sync " + http_.url(), "sync --json " + http_.url(), std::string("--version"),
        std::string("get --help")}) {
    SCOPED_TRACE(arguments);
    for (const char* output : {">/dev/full", ">&-"}) {
      const Outcome got = run(arguments + " " + output);
      EXPECT_EQ(got.status, 1) << output;
      EXPECT_THAT(got.err, HasSubstr("blindfuse-client: cannot write to standard output"));
    }
  }
  EXPECT_THAT(run(get + key(6) + " >/dev/full").err, HasSubstr("No space left on device"));
  EXPECT_EQ(run(get + "nowhere >/dev/full").status, 3) << "nothing was to be written";
}

TEST_F(ClientProgram, AFailedWriteIsAFailureWhereAKeyWasNotAskedFor) {
  FakeServer fake(BatchDatabase::serve({{"owl", "bird"}}));
  HttpFakeServer server(fake);
  std::string arguments = "get --json " + server.url();
  for (const std::string& key : BatchDatabase::keys_of_buckets({0, 2, 5}, 4))
    arguments += " " + key;
  EXPECT_EQ(run(arguments).status, 4);
  EXPECT_EQ(run(arguments + " >/dev/full").status, 1);
}

// Without an end, keys would be asked for until somebody stops it.
TEST_F(ClientProgram, StopsAskingWhenNobodyReads) {
  for (const std::string& key : {key(6), std::string("nowhere")}) {
    for (const char* option : {"", "--json "}) {
      SCOPED_TRACE(option + key);
      const Outcome got = run_command(
          "yes " + key + " | { timeout 100 env " + program() + " get --stream " + option +
          http_.url() + " 2>&3; echo $? >&3; } 3>&2 | " + (key == "nowhere" ? "true" : "head -1"));
      EXPECT_THAT(got.err, HasSubstr("\n1\n"));
      EXPECT_THAT(got.err,
                  HasSubstr(key == "nowhere" && option[0] == 0 ? "standard output has no reader"
                                                               : "standard output"));
    }
  }
  const Outcome full = run_command("yes " + key(6) + " | timeout 100 env " + program() +
                                   " get --stream " + http_.url() + " >/dev/full");
  EXPECT_EQ(full.status, 1);
}

// Printing takes time, and how much depends on what was found.
TEST_F(ClientProgram, PrintsAnswersToItsInputAfterTheLastRequest) {
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += "key " + std::to_string(i) + "\n";
  const uint64_t last_bytes = 4 * fake_.database.layout().response_bytes();
  fake_.alter_body = [last_bytes](Bytes& body) {
    if (body.size() == last_bytes) body.clear();
  };
  const auto count_of_answers = [](const Outcome& got) {
    size_t count = 0;
    std::istringstream err(got.err);
    for (std::string line; std::getline(err, line);) count += line.starts_with("not there: ");
    return count;
  };
  const Outcome whole = run("get " + http_.url(), lines);
  EXPECT_EQ(whole.status, 1);
  EXPECT_EQ(count_of_answers(whole), 0u);
  const Outcome streamed = run("get --stream " + http_.url(), lines);
  EXPECT_EQ(streamed.status, 1);
  EXPECT_EQ(count_of_answers(streamed), 16u);
  EXPECT_EQ(fake_.count("/queries"), 4u);
}

}  // namespace
}  // namespace blindfuse
