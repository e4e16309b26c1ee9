#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "bench/load/options.h"
#include "src/base/errors.h"

namespace blindfuse::load {
namespace {

Options parsed(std::vector<std::string> arguments) {
  CLI::App app;
  Options options;
  add_options(app, options);
  std::ranges::reverse(arguments);  // as the parser takes them
  app.parse(arguments);
  check_options(options);
  return options;
}

TEST(LoadOptions, AreAClosedLoopOfOneUnlessTold) {
  const Options options = parsed({"http://127.0.0.1:8080"});
  EXPECT_FALSE(options.is_open_loop());
  EXPECT_EQ(options.client_count(), 1u);
  EXPECT_EQ(options.body_format(), BodyFormat::kBinary);
  EXPECT_EQ(options.check_every, 16u);
  EXPECT_EQ(options.keys_per_request, std::nullopt);
}

TEST(LoadOptions, ARateMakesAnOpenLoop) {
  const Options options = parsed({"http://a", "--rate", "2.5", "--connections", "7"});
  EXPECT_TRUE(options.is_open_loop());
  EXPECT_EQ(options.client_count(), 7u);
}

TEST(LoadOptions, MisuseIsRefused) {
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"http://a", "http://b"},
                                             {"http://a", "--rate", "0"},
                                             {"http://a", "--rate", "5", "--concurrency", "2"},
                                             {"http://a", "--connections", "2"},
                                             {"http://a", "--concurrency", "0"},
                                             {"http://a", "--concurrency", "-1"},
                                             {"http://a", "--seconds", "0"},
                                             {"http://a", "--format", "xml"},
                                             {"http://a", "--keys-per-request", "0"},
                                             {"http://a", "--keys-per-request", "1025"},
                                             {"http://a", "--key-encoding", "latin1"},
                                             {"http://a", "--unknown"}}) {
    EXPECT_THROW(parsed(arguments), CLI::ParseError) << testing::PrintToString(arguments);
  }
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"ftp://a"},
           {"unix:socket"},
           {"unix:/" + std::string(200, 'x')},
           {"http://a", "--rate", "nan"},
           {"http://a", "--metrics-url", "metrics"},
           {"http://a", "--metrics-url", "unix:socket"},
           {"http://a", "--load-threads", "2"},
           {"http://a", "--rate", "9", "--connections", "2", "--load-threads", "3"},
           {"http://a", "--pool", "3", "--queries-per-request", "4"}}) {
    EXPECT_THROW(parsed(arguments), UsageError) << testing::PrintToString(arguments);
  }
}

TEST(LoadOptions, TheServerMayBeAUnixSocket) {
  const Options options = parsed({"unix:/run/x", "--metrics-url", "unix:/run/y"});
  EXPECT_EQ(options.url, "unix:/run/x");
  EXPECT_EQ(options.metrics_url, "unix:/run/y");
  EXPECT_EQ(parsed({"http://a"}).metrics_url, "");
}

TEST(LoadOptions, SharesAddUp) {
  const Options all = parsed({"http://a", "--rate", "90", "--connections", "10", "--load-threads",
                              "3", "--idle-connections", "2", "--slow-senders", "5"});
  unsigned connections = 0, idle = 0, slow = 0;
  double rate = 0;
  for (unsigned i = 0; i < 3; ++i) {
    const Options share = share_of(all, i);
    EXPECT_GE(share.connections, 3u);
    EXPECT_EQ(share.seed, all.seed + i);
    connections += share.connections;
    idle += share.idle_connections;
    slow += share.slow_senders;
    rate += *share.rate;
  }
  EXPECT_EQ(connections, 10u);
  EXPECT_EQ(idle, 2u);
  EXPECT_EQ(slow, 5u);
  EXPECT_DOUBLE_EQ(rate, 90);
}

}  // namespace
}  // namespace blindfuse::load
