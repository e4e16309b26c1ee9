// Packed responses of two levels, through the real programs and real HTTP, and a server that goes
// from one level to two and back.
#include <blindfuse/client.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "host/database/directory.h"
#include "tests/programs/program_testing.h"
#include "tests/server/loopback_client.h"

namespace blindfuse::program_testing {
namespace {

using server_testing::get_request;
using server_testing::LoopbackClient;

constexpr int kKeys = 2000;

std::string meaning(int key, int version) {
  return "meaning " + std::to_string(key * 7) + " of version " + std::to_string(version);
}

class ServedTwoLevels : public ::testing::Test {
 protected:
  void build(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {kBlindfuse, "build",    input_, "--output",
                                          database_,  "--shards", "4"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = run(folder_, arguments);
    ASSERT_EQ(result.status, 0) << result.err;
  }

  // All keys, of which every version has other values.
  void write_words(int version) {
    std::string lines;
    for (int i = 0; i < kKeys; ++i) {
      lines += "word " + std::to_string(i) + "\t" + meaning(i, version) + "\n";
    }
    write_file(input_, lines);
  }

  // The lines of `get --json`.
  std::vector<nlohmann::json> get(const std::string& url, const std::vector<std::string>& keys,
                                  int status) {
    std::vector<std::string> arguments = {kBlindfuseClient,  "get",   url, "--cache",
                                          folder_ / "cache", "--json"};
    arguments.insert(arguments.end(), keys.begin(), keys.end());
    const ProgramResult result = run(folder_, arguments);
    EXPECT_EQ(result.status, status) << result.err;
    std::vector<nlohmann::json> answers;
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) {
      answers.push_back(nlohmann::json::parse(line));
    }
    return answers;
  }

  ParsedManifest manifest() const { return DatabaseDirectory(database_).read_manifest(); }
  Layout layout() const { return manifest().manifest.layout; }

  const TemporaryFolder folder_;
  const std::string database_ = folder_ / "words.blindfuse";
  const std::string input_ = folder_ / "words.tsv";
};

class LookUpsOfTwoLevels : public ServedTwoLevels, public ::testing::WithParamInterface<bool> {
 protected:
  // Of --levels 2 and what else is asked for.
  static std::vector<std::string> options(const std::vector<std::string>& more = {}) {
    std::vector<std::string> all = {"--levels", "2"};
    if (GetParam()) all.emplace_back("--short-key");
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  // Whether a key is there or not, and in every shard, as many bytes go each way.
  void expect_sizes(const std::vector<nlohmann::json>& answers) const {
    for (const nlohmann::json& answer : answers) {
      EXPECT_EQ(answer["bytes"]["query"], layout().query_bytes()) << answer;
      EXPECT_EQ(answer["bytes"]["response"], layout().response_bytes()) << answer;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(WithoutAndWithAShortKey, LookUpsOfTwoLevels, ::testing::Bool());

// Entry i lies in shard i mod 4.
TEST_P(LookUpsOfTwoLevels, FindNumbersOfEveryShardAndNoneBeyondTheEnd) {
  std::string values;
  for (int i = 0; i < 1000; ++i) values += "value " + std::to_string(i) + "\n";
  write_file(input_, values);
  ASSERT_NO_FATAL_FAILURE(build(options({"--index"})));
  ASSERT_EQ(layout().shard_count, 4u);
  RunningServer server(folder_, database_);
  ASSERT_NE(server.url(), "") << server.program().err();
  const auto found = get(server.url(), {"0", "1", "2", "3", "997", "998", "999"}, 0);
  ASSERT_EQ(found.size(), 7u);
  for (const nlohmann::json& answer : found) {
    EXPECT_EQ(answer["value"], "value " + answer["key"].get<std::string>());
  }
  expect_sizes(found);
  const auto beyond = get(server.url(), {"1000", "1001", "1002", "18446744073709551615"}, 3);
  ASSERT_EQ(beyond.size(), 4u);
  for (const nlohmann::json& answer : beyond) EXPECT_EQ(answer["found"], false) << answer;
  expect_sizes(beyond);
  EXPECT_EQ(server.stop(), 0) << server.program().err();
}

// A client that stays connected and a program that is started again each time, with a cache each,
// over epochs of one level, of two, of two with a short key, and of one again.
TEST_F(ServedTwoLevels, ComeAndGoUnderARunningServer) {
  const std::vector<std::vector<std::string>> kinds = {
      {"--mode", "packed", "--levels", "1"},
      {"--levels", "2"},
      {"--levels", "2", "--short-key"},
      {"--mode", "packed", "--levels", "1"},
  };
  write_words(0);
  ASSERT_NO_FATAL_FAILURE(build(kinds[0]));
  ASSERT_FALSE(layout().second);
  // It looks for epochs when it is told to.
  RunningServer server(folder_, database_, "127.0.0.1:0",
                       {"--watch-seconds", "0", "--grace-seconds", "600"});
  ASSERT_NE(server.url(), "") << server.program().err();
  const auto served_epoch = [&] {
    const auto response = LoopbackClient(server.url()).ask(get_request("/v1/database"));
    return nlohmann::json::parse(response.body).at("epoch").get<std::string>();
  };
  ClientOptions options;
  options.cache_folder = folder_ / "other cache";
  Client client = Client::connect(server.url(), options);
  EXPECT_EQ(client.get("word 3"), meaning(3, 0));
  EXPECT_EQ(client.get("nothing"), std::nullopt);

  for (int version = 1; version < static_cast<int>(kinds.size()); ++version) {
    SCOPED_TRACE("version " + std::to_string(version));
    // Queries for the epoch before, of which one is used in that epoch after the change.
    client.prepare(2);
    write_words(version);
    ASSERT_NO_FATAL_FAILURE(build(kinds[static_cast<size_t>(version)]));
    EXPECT_EQ(layout().levels(), version == 3 ? 1u : 2u);
    EXPECT_EQ(layout().second && layout().second->key_order > 0, version == 2);
    const ProgramResult verified = run(folder_, {kBlindfuse, "inspect", database_, "--verify"});
    EXPECT_EQ(verified.status, 0) << verified.err;
    EXPECT_EQ(client.get("word 5"), meaning(5, version - 1));
    server.program().send(SIGHUP);
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (served_epoch() != manifest().epoch && std::chrono::steady_clock::now() < give_up) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    ASSERT_EQ(served_epoch(), manifest().epoch) << server.program().err();
    EXPECT_EQ(client.get("word 6"), meaning(6, version - 1)) << "an epoch in its time of grace";
    client.sync();
    const std::vector<std::string> keys = {"word 7", "nothing", "word 1999"};
    const std::vector<Answer> answers = client.look_up(keys);
    ASSERT_EQ(answers.size(), 3u);
    EXPECT_EQ(answers[0].value, meaning(7, version));
    EXPECT_EQ(answers[1].value, std::nullopt);
    EXPECT_EQ(answers[2].value, meaning(1999, version));
    for (const Answer& answer : answers) {
      EXPECT_EQ(answer.query_bytes, layout().query_bytes());
      EXPECT_EQ(answer.response_bytes, layout().response_bytes());
    }
    const auto found = get(server.url(), {"word 8", "nothing"}, 3);
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ(found[0]["value"], meaning(8, version));
    EXPECT_EQ(found[1]["found"], false);
    EXPECT_EQ(found[0]["bytes"]["query"], layout().query_bytes());
  }
  EXPECT_EQ(server.stop(), 0) << server.program().err();
}

}  // namespace
}  // namespace blindfuse::program_testing
