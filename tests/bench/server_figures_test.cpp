#include "bench/load/server_figures.h"

#include <gtest/gtest.h>

#include "src/base/errors.h"

namespace blindfuse::load {
namespace {

TEST(SumOf, AddsUpWhatHasTheNameAndTheLabel) {
  const std::string metrics =
      "# HELP requests_total Requests.\n"
      "# TYPE requests_total counter\n"
      "requests_total{route=\"/a\",status=\"200\"} 3\n"
      "requests_total{route=\"/a b\",status=\"503\"} 4\n"
      "requests_total{route=\"/b\",status=\"200\"} 1e1\n"
      "requests_total_more 100\n"
      "length 7.5";
  EXPECT_EQ(sum_of(metrics, "requests_total"), 17);
  EXPECT_EQ(sum_of(metrics, "requests_total", R"(status="200")"), 13);
  EXPECT_EQ(sum_of(metrics, "requests_total", R"(status="404")"), std::nullopt);
  EXPECT_EQ(sum_of(metrics, "length"), 7.5);
  EXPECT_EQ(sum_of(metrics, "requests"), std::nullopt);
  EXPECT_EQ(sum_of("", "length"), std::nullopt);
}

TEST(SumOf, ALineWithoutANumberIsRefused) {
  for (const char* line : {"a b", "a 1x", "a{b=\"c\"} ", "a 0x10"}) {
    try {
      sum_of(std::string("fine 1\n") + line + "\n", "a");
      ADD_FAILURE() << "accepted: " << line;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("line 2 "), std::string::npos) << error.what();
    }
  }
}

TEST(ServerFigures, AreWhatWasAddedInBetween) {
  const std::string before =
      "blindfuse_batch_queries_sum 100\nblindfuse_batch_queries_count 50\n"
      "blindfuse_queue_wait_seconds_sum 1\nblindfuse_queue_wait_seconds_count 100\n"
      "blindfuse_batch_seconds_sum 2\nblindfuse_queue_length 9\n";
  const std::string after =
      "blindfuse_batch_queries_sum 180\nblindfuse_batch_queries_count 60\n"
      "blindfuse_queue_wait_seconds_sum 1.5\nblindfuse_queue_wait_seconds_count 200\n"
      "blindfuse_batch_seconds_sum 2.25\nblindfuse_queue_length 3\n"
      "blindfuse_queries_total{outcome=\"answered\"} 80\n"
      "blindfuse_queries_total{outcome=\"queue_full\"} 5\n";
  const nlohmann::json figures = server_figures(before, after);
  EXPECT_EQ(figures.at("mean_batch"), 8);
  EXPECT_EQ(figures.at("batches"), 10);
  EXPECT_EQ(figures.at("queries"), 80);
  EXPECT_EQ(figures.at("answered"), 80);
  EXPECT_EQ(figures.at("engine_seconds"), 0.25);
  EXPECT_NEAR(figures.at("queue_wait_ms").get<double>(), 5, 1e-9);
  EXPECT_EQ(figures.at("queue_length"), 3);
  EXPECT_TRUE(figures.at("open_fds").is_null());
}

TEST(ServerFigures, WithoutBatchesThereIsNoMean) {
  const std::string same = "blindfuse_batch_queries_sum 100\nblindfuse_batch_queries_count 50\n";
  const nlohmann::json figures = server_figures(same, same);
  EXPECT_EQ(figures.at("batches"), 0);
  EXPECT_TRUE(figures.at("mean_batch").is_null());
}

}  // namespace
}  // namespace blindfuse::load
