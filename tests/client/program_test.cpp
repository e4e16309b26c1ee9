// blindfuse-client as a person or a script runs it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "host/publish/signing_key.h"
#include "src/base/base64.h"
#include "tests/client/client_program.h"
#include "tests/client/packed_database.h"
#include "tests/client/watched_fake_server.h"

namespace blindfuse {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

TEST_F(ClientProgram, PrintsOneValueByteForByte) {
  const Outcome got = run("get " + http_.url() + " " + key(10));
  EXPECT_EQ(got.status, 0);
  EXPECT_EQ(got.out, value(10) + "\n");
  EXPECT_EQ(got.err, "");
}

TEST_F(ClientProgram, PrintsSeveralWithTheirKeysAndSaysWhatIsNotThere) {
  const Outcome got = run("get " + http_.url() + " " + key(6) + " nowhere -- " + key(7) + " -x");
  EXPECT_EQ(got.status, 3);
  EXPECT_EQ(got.out, key(6) + "\t" + value(6) + "\n" + key(7) + "\t" + value(7) + "\n");
  EXPECT_EQ(got.err, "not there: nowhere\nnot there: -x\n");
  EXPECT_EQ(fake_.count("/queries"), 1u);
}

TEST_F(ClientProgram, ReadsKeysFromStandardInput) {
  std::string input, expected;
  for (size_t i = 5; i < 25; ++i) {
    input += key(i) + "\n";
    expected += key(i) + "\t" + value(i) + "\n";
  }
  const Outcome got = run("get " + http_.url(), input);
  EXPECT_EQ(got.status, 0);
  EXPECT_EQ(got.out, expected);
  EXPECT_EQ(fake_.count("/queries"), 2u);
  EXPECT_EQ(run("get " + http_.url(), "").out, "");
}

TEST_F(ClientProgram, SkipsAByteOrderMarkAndBlankLines) {
  const Outcome got =
      run("get " + http_.url(), "\xef\xbb\xbf" + key(6) + "\r\n\n" + key(7) + "\n\n");
  EXPECT_EQ(got.status, 0) << got.err;
  EXPECT_EQ(got.out, key(6) + "\t" + value(6) + "\n" + key(7) + "\t" + value(7) + "\n");
  const std::filesystem::path api_key = scratch_.path() / "api-key";
  std::ofstream(api_key) << "\xef\xbb\xbfsecret\n";
  EXPECT_EQ(run("get --api-key-file " + api_key.string() + " " + http_.url() + " " + key(6)).status,
            0);
  EXPECT_EQ(http_.last_headers().find("Authorization")->second, "Bearer secret");
}

TEST_F(ClientProgram, CountsItsRequestsAndTheirBytes) {
  run("sync " + http_.url());
  const Layout& layout = fake_.database.layout();
  const Outcome got = run("get --stats " + http_.url() + " " + key(6) + " nowhere");
  EXPECT_EQ(got.status, 3);
  // The manifest, and one request of two queries.
  EXPECT_THAT(got.err,
              MatchesRegex("not there: nowhere\nrequests: 2, bytes sent: " +
                           std::to_string(2 * layout.query_bytes()) + ", bytes received: " +
                           std::to_string(fake_.database.manifest_text().size() +
                                          2 * layout.response_bytes()) +
                           ", seconds: [0-9]+\\.[0-9]{3}\n"));
  EXPECT_EQ(run("get " + http_.url() + " " + key(6)).err, "");
}

// As a user without the right to write whatever the permissions are.
TEST_F(ClientProgram, UsesACacheThatCanOnlyBeRead) {
  run("sync " + http_.url());
  const std::string bound =
      geteuid() == 0 ? "setpriv --inh-caps=-dac_override --bounding-set=-dac_override " : "";
  if (std::system((bound + "true").c_str()) != 0)
    GTEST_SKIP() << "root cannot do without its rights";
  ASSERT_EQ(std::system(("chmod -R a-w " + cache().string()).c_str()), 0);
  const auto run_bound = [&](const std::string& arguments) {
    return run_command(bound + "env " + program() + " " + arguments);
  };
  const Outcome got = run_bound("get " + http_.url() + " " + key(6));
  EXPECT_EQ(got.err, "");
  EXPECT_EQ(got.out, value(6) + "\n");
  const std::string cure = "name another folder with --cache";
  EXPECT_THAT(run_bound("sync " + http_.url()).err, HasSubstr(cure));
  EXPECT_THAT(run_bound("get http://localhost:" + std::to_string(http_.port()) + " x").err,
              HasSubstr(cure));
  ASSERT_EQ(std::system(("chmod -R u+w " + cache().string()).c_str()), 0);
}

TEST_F(ClientProgram, TakesKeysInAnyEncoding) {
  EXPECT_EQ(run("get --key-encoding hex " + http_.url() + " " + key_hex(4)).out, value(4) + "\n");
  const std::string bytes = key(4);
  const std::string base64 =
      encode_base64({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  EXPECT_EQ(run("get --key-encoding base64 " + http_.url() + " -- " + base64).out, value(4) + "\n");
  EXPECT_EQ(run("get " + http_.url() + " ''").out, value(0) + "\n");  // the empty key
  EXPECT_EQ(run("get --key-encoding hex " + http_.url() + " xyz").status, 1);
  EXPECT_EQ(run("get " + http_.url() + " '\xff'").status, 1);  // not UTF-8
  EXPECT_EQ(run("get --key-encoding rot13 " + http_.url() + " xyz").status, 2);
}

TEST_F(ClientProgram, PrintsJson) {
  const Outcome got =
      run("get --json --key-encoding hex " + http_.url() + " " + key_hex(13) + " 00ff00");
  EXPECT_EQ(got.status, 3);
  const auto lines = json_lines(got.out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["key"], key_hex(13));
  EXPECT_EQ(lines[0]["found"], true);
  EXPECT_EQ(lines[0]["value"], std::string(12, '\0'));  // the vectors' value of zeros
  EXPECT_EQ(lines[0]["value_encoding"], "utf8");
  EXPECT_EQ(lines[0]["bytes"]["query"], fake_.database.layout().query_bytes());
  EXPECT_EQ(lines[0]["bytes"]["response"], fake_.database.layout().response_bytes());
  for (const char* stage : {"prepare", "server", "decode", "total"}) {
    EXPECT_GT(lines[0]["seconds"][stage], 0.0) << stage;
  }
  EXPECT_EQ(lines[1]["found"], false);
  EXPECT_FALSE(lines[1].contains("value"));
  // The vectors' value of bytes 80 is not UTF-8.
  const auto bytes =
      json_lines(run("get --json --key-encoding hex " + http_.url() + " " + key_hex(12)).out);
  EXPECT_EQ(bytes.at(0)["value"], "gICAgICAgICAgICA");
  EXPECT_EQ(bytes.at(0)["value_encoding"], "base64");
}

TEST_F(ClientProgram, SaysWhichKeysWereNotAskedFor) {
  FakeServer fake(BatchDatabase::serve({{"owl", "bird"}}));
  HttpFakeServer server(fake);
  const auto keys = BatchDatabase::keys_of_buckets({0, 2, 5}, 4);
  std::string arguments = server.url();
  for (const std::string& key : keys) arguments += " " + key;
  const Outcome got = run("get " + arguments);
  EXPECT_EQ(got.status, 4);
  EXPECT_EQ(got.out, "");
  EXPECT_EQ(got.err, "not there: " + keys[0] + "\nnot there: " + keys[1] +
                         "\nnot there: " + keys[2] + "\nnot asked for: " + keys[3] + "\n");
  EXPECT_EQ(fake.count("/queries"), 1u);

  const Outcome json = run("get --json " + arguments);
  EXPECT_EQ(json.status, 4);
  const auto lines = json_lines(json.out);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0]["asked"], true);
  EXPECT_EQ(lines[0]["request_keys"], 3);
  EXPECT_EQ(lines[0]["bytes"]["query"], (BatchDatabase::kQueryBytes + 2) / 3);
  EXPECT_EQ(lines[3]["asked"], false);
  EXPECT_EQ(lines[3]["found"], false);
  EXPECT_EQ(lines[3]["bytes"]["query"], 0);
}

TEST_F(ClientProgram, AsksForSeveralKeysWithARequest) {
  FakeServer fake(BatchDatabase::serve({{"owl", "bird"}, {"lark", "song"}, {"empty", ""}}));
  HttpFakeServer server(fake);
  const Outcome got = run("get " + server.url(), "owl\nlark\nempty\nnowl\nowl\n");
  EXPECT_EQ(got.status, 3);
  EXPECT_EQ(got.out, "owl\tbird\nlark\tsong\nempty\t\nowl\tbird\n");
  EXPECT_EQ(got.err, "not there: nowl\n");
  EXPECT_EQ(fake.count("/queries"), 2u);
  EXPECT_EQ(run("get --prepare 2 " + server.url() + " owl").out, "bird\n");
}

// Keys from the standard input are asked for some at a time: none of the requests but the last one
// may have room for more.
TEST_F(ClientProgram, FillsRequestsWithTheKeysOfItsInput) {
  FakeServer fake(BatchDatabase::serve({{"owl", "bird"}}, 3));
  HttpFakeServer server(fake);
  std::string lines;
  for (int i = 0; i < 18; ++i) lines += "key " + std::to_string(i) + "\n";
  run("get " + server.url(), lines);
  EXPECT_EQ(fake.count("/queries"), 6u);
}

TEST_F(ClientProgram, SyncsAndSaysSo) {
  const auto first = json_lines(run("sync --json " + http_.url()).out);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0]["epoch"], fake_.database.epoch());
  EXPECT_EQ(first[0]["shards"], 2);
  EXPECT_EQ(first[0]["parts"], 2);
  EXPECT_EQ(first[0]["shards_fetched"], 2);
  EXPECT_EQ(first[0]["hint_bytes"], 2 * 52'003);
  EXPECT_EQ(first[0]["bytes_fetched"], 2 * 52'003 + 2 * 112);
  EXPECT_GT(first[0]["seconds"], 0.0);
  EXPECT_EQ(json_lines(run("sync --json " + http_.url()).out).at(0)["shards_fetched"], 0);
  EXPECT_THAT(run("sync --verify " + http_.url()).out,
              HasSubstr("0 of 2 hints fetched; all hints are 104.0 kB"));
  std::filesystem::remove_all(scratch_.path() / "cache");
  const std::string fetched = run("sync " + http_.url()).out;
  EXPECT_THAT(fetched, HasSubstr("2 of 2 hints fetched (104.2 kB with the table)"));
  EXPECT_THAT(fetched, EndsWith("\nnot signed\n"));
}

TEST_F(ClientProgram, SaysWhoSignedTheDatabase) {
  const SigningKey key =
      SigningKey::make([](std::span<uint8_t> bytes) { std::ranges::fill(bytes, uint8_t{1}); });
  fake_.database =
      fake_.database.with_signature(key.sign(fake_.database.manifest(), 5, 1'795'545'000));
  EXPECT_THAT(run("sync " + http_.url()).out,
              EndsWith("\nsigned by " + encode_hex(key.public_key()) +
                       " as number 5 of 2026-11-24T18:30:00Z\n"));
}

TEST_F(ClientProgram, SpeaksOfMasksWhereResponsesArePacked) {
  fake_.database = ServedDatabase::with_noise(9, 500, 0, "ring-2048", 18);
  const auto synced = json_lines(run("sync --json " + http_.url()).out).at(0);
  EXPECT_EQ(synced["shards"], 9);
  EXPECT_EQ(synced["parts"], 5);
  EXPECT_EQ(synced["shards_fetched"], 5);
  EXPECT_EQ(synced["hint_bytes"], 5 * 4608);
  EXPECT_EQ(synced["bytes_fetched"], 5 * 4608 + 9 * 112 + 5 * 64);
  EXPECT_THAT(run("sync " + http_.url()).out, HasSubstr("0 of 5 masks fetched"));
}

TEST_F(ClientProgram, MisuseIsStatus2) {
  for (const char* arguments :
       {"", "fetch", "get", "get --no-such-option http://127.0.0.1:1 x",
        "get http://127.0.0.1:1 '[a,b]'", "sync http://127.0.0.1:1 -- x",
        "sync http://127.0.0.1:1 x", "get --prepare 0 http://127.0.0.1:1 x", "get nonsense x",
        "sync ftp://a.b", "fetch --help", "get --threads 2000 http://127.0.0.1:1 x"}) {
    const Outcome got = run(arguments);
    EXPECT_EQ(got.status, 2) << arguments;
    EXPECT_NE(got.err, "") << arguments;
    EXPECT_EQ(got.out, "") << arguments;
  }
}

TEST_F(ClientProgram, KeysThatLookLikeSyntaxAreKeys) {
  const Outcome got = run("get " + http_.url() + " sync get -- '[a,b]' --json -- -h");
  EXPECT_EQ(got.status, 3);
  EXPECT_EQ(got.err,
            "not there: sync\nnot there: get\nnot there: [a,b]\nnot there: --json\n"
            "not there: --\nnot there: -h\n");
}

TEST_F(ClientProgram, FailureIsOneLineAndStatus1) {
  for (const char* arguments : {"get http://127.0.0.1:1 x", "sync http://no-such-host.invalid"}) {
    const Outcome got = run(arguments);
    EXPECT_EQ(got.status, 1) << arguments;
    EXPECT_THAT(got.err, StartsWith("blindfuse-client: ")) << arguments;
    EXPECT_EQ(std::count(got.err.begin(), got.err.end(), '\n'), 1) << got.err;
  }
}

TEST_F(ClientProgram, ExplainsItself) {
  EXPECT_THAT(run("--help").out, HasSubstr("sync"));
  const Outcome help = run("get --help");
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.out, HasSubstr("3 a key is not there"));
  EXPECT_THAT(run("--version").out, StartsWith("blindfuse-client "));
  EXPECT_EQ(run("help").out, run("--help").out);
  EXPECT_EQ(run("help get").out, help.out);
  for (const char* unknown : {"help fetch", "fetch --help"}) {
    EXPECT_EQ(run(unknown).err,
              "blindfuse-client: there is no command \"fetch\"; there are get and sync\n");
  }
}

// The output of blindfuse-client on a terminal, into pipes without a reader, and on disks that are
// full.
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
