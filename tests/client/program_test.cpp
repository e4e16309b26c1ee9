// blindfuse-client as a person or a script runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "src/base/base64.h"
#include "tests/client/batch_database.h"
#include "tests/client/http_fake_server.h"
#include "tests/client/scratch_folder.h"
#include "tests/paths.h"

namespace blindfuse {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct Outcome {
  int status = -1;
  std::string out;
  std::string err;
};

class ClientProgram : public testing::Test {
 protected:
  ScratchFolder scratch_;
  FakeServer fake_{ServedDatabase::from_vectors("database_keyword.json")};
  const nlohmann::json entries_ = read_vectors("database_keyword.json")["entries"];

  std::string key_hex(size_t i) const { return entries_[i]["key"]; }
  std::string key(size_t i) const { return *decode_hex(key_hex(i)); }
  std::string value(size_t i) const { return *decode_hex(entries_[i]["value"].get<std::string>()); }

  // Arguments as a shell takes them; `input` on standard input.
  Outcome run(const std::string& arguments, const std::string& input = "") const {
    const std::filesystem::path in = scratch_.path() / "in", out = scratch_.path() / "out",
                                err = scratch_.path() / "err";
    std::ofstream(in, std::ios::binary) << input;
    const std::string command = "BLINDFUSE_CACHE=" + (scratch_.path() / "cache").string() + " " +
                                paths::program_folder() + "/blindfuse-client " + arguments + " <" +
                                in.string() + " >" + out.string() + " 2>" + err.string();
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(out), contents(err)};
  }

  static std::string contents(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  static std::vector<nlohmann::json> json_lines(const std::string& text) {
    std::vector<nlohmann::json> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
      lines.push_back(nlohmann::json::parse(line));
    }
    return lines;
  }
};

TEST_F(ClientProgram, PrintsOneValueByteForByte) {
  HttpFakeServer server(fake_);
  const Outcome got = run("get " + server.url() + " " + key(10));
  EXPECT_EQ(got.status, 0);
  EXPECT_EQ(got.out, value(10) + "\n");
  EXPECT_EQ(got.err, "");
}

TEST_F(ClientProgram, PrintsSeveralWithTheirKeysAndSaysWhatIsNotThere) {
  HttpFakeServer server(fake_);
  const Outcome got = run("get " + server.url() + " " + key(6) + " nowhere -- " + key(7) + " -x");
  EXPECT_EQ(got.status, 3);
  EXPECT_EQ(got.out, key(6) + "\t" + value(6) + "\n" + key(7) + "\t" + value(7) + "\n");
  EXPECT_EQ(got.err, "not there: nowhere\nnot there: -x\n");
  EXPECT_EQ(fake_.count("/queries"), 1u);
}

TEST_F(ClientProgram, ReadsKeysFromStandardInput) {
  HttpFakeServer server(fake_);
  std::string input, expected;
  for (size_t i = 5; i < 25; ++i) {
    input += key(i) + "\n";
    expected += key(i) + "\t" + value(i) + "\n";
  }
  const Outcome got = run("get " + server.url(), input);
  EXPECT_EQ(got.status, 0);
  EXPECT_EQ(got.out, expected);
  EXPECT_EQ(fake_.count("/queries"), 2u);
  EXPECT_EQ(run("get " + server.url(), "").out, "");
}

TEST_F(ClientProgram, SaysOnATerminalThatItReadsKeys) {
  HttpFakeServer server(fake_);
  const std::string told = "keys from standard input, one a line";
  EXPECT_EQ(run("get " + server.url()).err, "");
  const std::string program = paths::program_folder() + "/blindfuse-client";
  const std::filesystem::path out = scratch_.path() / "out";
  const std::string command = "BLINDFUSE_CACHE=" + (scratch_.path() / "cache").string() +
                              " script -qec '" + program + " get " + server.url() +
                              "' /dev/null </dev/null >" + out.string() + " 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_THAT(contents(out), HasSubstr(told));
}

TEST_F(ClientProgram, TakesKeysInAnyEncoding) {
  HttpFakeServer server(fake_);
  EXPECT_EQ(run("get --key-encoding hex " + server.url() + " " + key_hex(4)).out, value(4) + "\n");
  const std::string bytes = key(4);
  const std::string base64 =
      encode_base64({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  EXPECT_EQ(run("get --key-encoding base64 " + server.url() + " -- " + base64).out,
            value(4) + "\n");
  EXPECT_EQ(run("get " + server.url() + " ''").out, value(0) + "\n");  // the empty key
  EXPECT_EQ(run("get --key-encoding hex " + server.url() + " xyz").status, 1);
  EXPECT_EQ(run("get --key-encoding rot13 " + server.url() + " xyz").status, 2);
}

TEST_F(ClientProgram, PrintsJson) {
  HttpFakeServer server(fake_);
  const Outcome got =
      run("get --json --key-encoding hex " + server.url() + " " + key_hex(13) + " 00ff00");
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
      json_lines(run("get --json --key-encoding hex " + server.url() + " " + key_hex(12)).out);
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

// Printing takes time, and how much depends on what was found.
TEST_F(ClientProgram, PrintsAnswersToItsInputAfterTheLastRequest) {
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += "key " + std::to_string(i) + "\n";
  const uint64_t last_bytes = 4 * fake_.database.layout().response_bytes();
  fake_.alter_body = [last_bytes](Bytes& body) {
    if (body.size() == last_bytes) body.clear();
  };
  HttpFakeServer server(fake_);
  const auto count_of_answers = [](const Outcome& got) {
    size_t count = 0;
    std::istringstream err(got.err);
    for (std::string line; std::getline(err, line);) count += line.starts_with("not there: ");
    return count;
  };
  const Outcome whole = run("get " + server.url(), lines);
  EXPECT_EQ(whole.status, 1);
  EXPECT_EQ(count_of_answers(whole), 0u);
  const Outcome streamed = run("get --stream " + server.url(), lines);
  EXPECT_EQ(streamed.status, 1);
  EXPECT_EQ(count_of_answers(streamed), 16u);
  EXPECT_EQ(fake_.count("/queries"), 4u);
}

TEST_F(ClientProgram, SyncsAndSaysSo) {
  HttpFakeServer server(fake_);
  const auto first = json_lines(run("sync --json " + server.url()).out);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0]["epoch"], fake_.database.epoch());
  EXPECT_EQ(first[0]["shards"], 2);
  EXPECT_EQ(first[0]["parts"], 2);
  EXPECT_EQ(first[0]["shards_fetched"], 2);
  EXPECT_EQ(first[0]["hint_bytes"], 2 * 52'003);
  EXPECT_EQ(first[0]["bytes_fetched"], 2 * 52'003 + 2 * 112);
  EXPECT_GT(first[0]["seconds"], 0.0);
  EXPECT_EQ(json_lines(run("sync --json " + server.url()).out).at(0)["shards_fetched"], 0);
  EXPECT_THAT(run("sync --verify " + server.url()).out,
              HasSubstr("0 of 2 hints fetched; all hints are 104.0 kB"));
  std::filesystem::remove_all(scratch_.path() / "cache");
  EXPECT_THAT(run("sync " + server.url()).out,
              HasSubstr("2 of 2 hints fetched (104.2 kB with the table)"));
}

TEST_F(ClientProgram, SpeaksOfMasksWhereResponsesArePacked) {
  fake_.database = ServedDatabase::with_noise(9, 500, 0, "ring-2048", 18);
  HttpFakeServer server(fake_);
  const auto synced = json_lines(run("sync --json " + server.url()).out).at(0);
  EXPECT_EQ(synced["shards"], 9);
  EXPECT_EQ(synced["parts"], 5);
  EXPECT_EQ(synced["shards_fetched"], 5);
  EXPECT_EQ(synced["hint_bytes"], 5 * 4608);
  EXPECT_EQ(synced["bytes_fetched"], 5 * 4608 + 9 * 112 + 5 * 64);
  EXPECT_THAT(run("sync " + server.url()).out, HasSubstr("0 of 5 masks fetched"));
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

TEST_F(ClientProgram, NamesAnUnknownCommand) {
  EXPECT_EQ(run("fetch --help").err,
            "blindfuse-client: there is no command \"fetch\"; there are get and sync\n");
}

TEST_F(ClientProgram, KeysThatLookLikeSyntaxAreKeys) {
  HttpFakeServer server(fake_);
  const Outcome got = run("get " + server.url() + " sync get -- '[a,b]' --json -- -h");
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
  EXPECT_EQ(run("help fetch").err,
            "blindfuse-client: there is no command \"fetch\"; there are get and sync\n");
}

}  // namespace
}  // namespace blindfuse
