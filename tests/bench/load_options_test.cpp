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
  EXPECT_EQ(options.check_every, 16u);
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
                                             {"http://a", "--unknown"}}) {
    EXPECT_THROW(parsed(arguments), CLI::ParseError) << testing::PrintToString(arguments);
  }
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"ftp://a"}, {"http://a", "--rate", "nan"}, {"http://a", "--seconds", "nan"}}) {
    EXPECT_THROW(parsed(arguments), UsageError) << testing::PrintToString(arguments);
  }
}

}  // namespace
}  // namespace blindfuse::load
