// An operator and a client, through the real programs and real HTTP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/programs/program_testing.h"

namespace blindfuse::program_testing {
namespace {

using ::testing::HasSubstr;

class EndToEnd : public ::testing::Test {
 protected:
  ProgramResult build(const Words& more = {}) {
    return build_as(Words{"--params", "lwe-1288"} + more);
  }
  ProgramResult build_as(const Words& more) {
    return run(folder_, Words{kBlindfuse, "build", input_, "--output", database_} + more);
  }

  ProgramResult get(const std::string& url, const Words& more, const std::string& input = "") {
    return run(folder_, Words{kBlindfuseClient, "get", url, "--cache", folder_ / "cache"} + more,
               input);
  }

  static std::string dictionary(int keys) {
    std::string lines;
    for (int i = 0; i < keys; ++i) {
      lines += "word " + std::to_string(i) + "\tmeaning " + std::to_string(i * 7) + "\n";
    }
    return lines;
  }

  const TemporaryFolder folder_;
  const std::string database_ = folder_ / "words.blindfuse";
  const std::string input_ = write_file(folder_ / "words.tsv", dictionary(2000));
};

TEST_F(EndToEnd, AKeyIsFoundAndAnotherIsNot) {
  ASSERT_EQ(build({"--shards", "4"}).status, 0);
  RunningServer server(folder_, database_);
  ASSERT_NE(server.url(), "") << server.program().err();
  ProgramResult result = get(server.url(), {"word 1234"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, "meaning 8638\n");
  result = get(server.url(), {"--", "no such word"});
  EXPECT_EQ(result.status, 3) << result.err;
  result = get(server.url(), {"--json", "word 7", "word 1999", "nothing", "word 0"});
  EXPECT_EQ(result.status, 3) << result.err;
  std::vector<nlohmann::json> answers;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    answers.push_back(nlohmann::json::parse(line));
  }
  ASSERT_EQ(answers.size(), 4u);
  EXPECT_EQ(answers[0]["value"], "meaning 49");
  EXPECT_EQ(answers[1]["value"], "meaning 13993");
  EXPECT_EQ(answers[2]["found"], false);
  EXPECT_EQ(answers[3]["key"], "word 0");
  EXPECT_EQ(answers[3]["request_keys"], 4);
  const Layout layout = load(database_).manifest.layout;
  EXPECT_EQ(answers[3]["bytes"]["query"], layout.query_bytes());
  EXPECT_EQ(answers[3]["bytes"]["response"], layout.response_bytes());
  EXPECT_EQ(server.stop(), 0) << server.program().err();
}

TEST_F(EndToEnd, AClientFetchesOnlyTheShardsThatChanged) {
  ASSERT_EQ(build({"--shards", "4"}).status, 0);
  const auto sync = [&](const std::string& url) {
    // Epochs of one address share the cache.
    const ProgramResult result =
        run(folder_, {kBlindfuseClient, "sync", url, "--json", "--cache", folder_ / "cache"});
    EXPECT_EQ(result.status, 0) << result.err;
    return nlohmann::json::parse(result.out);
  };
  std::string listen;
  {
    RunningServer server(folder_, database_);
    listen = server.url().substr(std::string("http://").size());
    EXPECT_EQ(sync(server.url())["shards_fetched"], 4);
    EXPECT_EQ(sync(server.url())["shards_fetched"], 0);
    EXPECT_EQ(server.stop(), 0);
  }
  std::string changed = dictionary(2000);
  changed.replace(changed.find("meaning 0"), 9, "altered 0");
  write_file(input_, changed);
  ASSERT_THAT(build().out, HasSubstr("1 of 4 shards"));
  RunningServer server(folder_, database_, listen);
  EXPECT_EQ(sync(server.url())["shards_fetched"], 1);
  EXPECT_EQ(get(server.url(), {"word 0"}).out, "altered 0\n");
  EXPECT_EQ(get(server.url(), {"word 1"}).out, "meaning 7\n");
  EXPECT_EQ(server.stop(), 0);
}

TEST_F(EndToEnd, NumbersAreKeysOfAnIndexDatabase) {
  std::string values;
  for (int i = 0; i < 1000; ++i) values += "value " + std::to_string(i) + "\n";
  write_file(input_, values);
  ASSERT_EQ(build({"--index", "--shards", "3"}).status, 0);
  RunningServer server(folder_, database_);
  EXPECT_EQ(get(server.url(), {"0"}).out, "value 0\n");
  EXPECT_EQ(get(server.url(), {"999"}).out, "value 999\n");
  EXPECT_EQ(get(server.url(), {"1000"}).status, 3);
  EXPECT_NE(get(server.url(), {"one"}).status, 0);
  EXPECT_EQ(server.stop(), 0);
}

// Without hints, and with a cache that outlives an epoch.
TEST_F(EndToEnd, PackedResponsesNeedNoHint) {
  const ProgramResult built = build_as({"--shards", "4", "--mode", "packed"});
  ASSERT_EQ(built.status, 0) << built.err;
  EXPECT_THAT(built.out, HasSubstr("4 of 4 shards rebuilt, 1 of 1 pack"));
  const ProgramResult inspected =
      run(folder_, {kBlindfuse, "inspect", database_, "--verify", "--json"});
  ASSERT_EQ(inspected.status, 0) << inspected.err;
  const auto found = nlohmann::json::parse(inspected.out);
  EXPECT_EQ(found["mode"], "packed");
  EXPECT_EQ(found["samples_verified"], 16);

  const auto sync = [&](const std::string& url) {
    const ProgramResult result =
        run(folder_, {kBlindfuseClient, "sync", url, "--json", "--cache", folder_ / "cache"});
    EXPECT_EQ(result.status, 0) << result.err;
    return nlohmann::json::parse(result.out);
  };
  std::string listen;
  {
    RunningServer server(folder_, database_);
    ASSERT_NE(server.url(), "") << server.program().err();
    listen = server.url().substr(std::string("http://").size());
    const ProgramResult result = get(server.url(), {"--json", "word 1234", "no such word"});
    EXPECT_EQ(result.status, 3) << result.err;
    std::istringstream lines(result.out);
    std::string line;
    std::getline(lines, line);
    const auto present = nlohmann::json::parse(line);
    EXPECT_EQ(present["value"], "meaning 8638");
    const uint64_t words_bytes = load(database_).manifest.layout.query_words_bytes();
    EXPECT_EQ(present["bytes"]["query"], words_bytes + 24'576);
    std::getline(lines, line);
    EXPECT_EQ(nlohmann::json::parse(line)["found"], false);
    const auto synced = sync(server.url());
    EXPECT_EQ(synced["shards_fetched"], 0) << "the look-up fetched the mask";
    EXPECT_EQ(synced["parts"], 1);
    EXPECT_EQ(server.stop(), 0) << server.program().err();
  }
  std::string changed = dictionary(2000);
  changed.replace(changed.find("meaning 0"), 9, "altered 0");
  write_file(input_, changed);
  // The mode is kept, though hints would cost less.
  EXPECT_THAT(build_as({}).out, HasSubstr("1 of 4 shards rebuilt, 1 of 1 pack"));
  RunningServer server(folder_, database_, listen);
  EXPECT_EQ(get(server.url(), {"word 0"}).out, "altered 0\n");
  EXPECT_EQ(get(server.url(), {"word 1"}).out, "meaning 7\n");
  EXPECT_EQ(get(server.url(), {"word 2000"}).status, 3);
  EXPECT_EQ(sync(server.url())["shards_fetched"], 0) << "the first of them did";
  EXPECT_EQ(server.stop(), 0) << server.program().err();
}

TEST_F(EndToEnd, APortInUseIsOneClearLine) {
  ASSERT_EQ(build().status, 0);
  RunningServer server(folder_, database_);
  const std::string listen = server.url().substr(std::string("http://").size());
  const ProgramResult second = run(folder_, {kBlindfuse, "serve", database_, "--listen", listen});
  EXPECT_EQ(second.status, 1);
  EXPECT_THAT(second.err, HasSubstr(listen.substr(listen.find(':') + 1)));
  EXPECT_THAT(second.err, HasSubstr("in use"));
  EXPECT_EQ(get(server.url(), {"word 1"}).status, 0) << "the first goes on";
  EXPECT_EQ(server.stop(), 0);
}

}  // namespace
}  // namespace blindfuse::program_testing
