#include "bench/load/metrics_text.h"

#include <gtest/gtest.h>

#include <cmath>

#include "bench/load/server_figures.h"
#include "src/base/errors.h"

namespace blindfuse::load {
namespace {

TEST(MetricsText, SumsWhatHasTheLabels) {
  const MetricsText metrics = MetricsText::parse(
      "# HELP requests_total Requests.\n"
      "# TYPE requests_total counter\n"
      "requests_total{route=\"/a\",status=\"200\"} 3\n"
      "requests_total{route=\"/a\",status=\"503\"} 4 1700000000000\r\n"
      "\n"
      "  requests_total { status=\"200\" , route=\"/b\", } 1e1\n"
      "length 7.5\n"
      "wait_bucket{le=\"+Inf\"} +Inf\n"
      "nothing NaN");
  EXPECT_EQ(metrics.sum("requests_total"), 17);
  EXPECT_EQ(metrics.sum("requests_total", {{"status", "200"}}), 13);
  EXPECT_EQ(metrics.sum("requests_total", {{"status", "200"}, {"route", "/b"}}), 10);
  EXPECT_EQ(metrics.sum("requests_total", {{"status", "404"}}), std::nullopt);
  EXPECT_EQ(metrics.sum("length"), 7.5);
  EXPECT_TRUE(std::isinf(*metrics.sum("wait_bucket", {{"le", "+Inf"}})));
  EXPECT_TRUE(std::isnan(*metrics.sum("nothing")));
  EXPECT_EQ(metrics.sum("unknown"), std::nullopt);
}

TEST(MetricsText, LabelsMayHoldAnything) {
  const MetricsText metrics = MetricsText::parse(R"(a{x="\"} \\ \n,",y=""} 1)");
  EXPECT_EQ(metrics.sum("a", {{"x", "\"} \\ \n,"}, {"y", ""}}), 1);
}

TEST(MetricsText, NothingIsFine) {
  EXPECT_EQ(MetricsText::parse("").sum("a"), std::nullopt);
  EXPECT_EQ(MetricsText::parse("\n# only a comment").sum("a"), std::nullopt);
}

TEST(MetricsText, MalformedTextIsRefusedByItsLine) {
  for (const char* line :
       {"a", "a b", "1a 1", "a 1 2 3", "a 1 x", "a{ 1", "a{b} 1", "a{b=} 1", "a{b=c} 1",
        "a{b=\"c} 1", "a{b=\"c\" 1", "a{b=\"c\"d=\"e\"} 1", "a{b=\"c\"}", "a{b=\"\\", "a 1.2.3",
        "a 0x10", "{} 1", "<html>", "a{=\"b\"} 1"}) {
    try {
      MetricsText::parse(std::string("fine 1\n") + line + "\n");
      ADD_FAILURE() << "accepted: " << line;
    } catch (const BadInput& error) {
      EXPECT_NE(std::string(error.what()).find("line 2 "), std::string::npos) << error.what();
    }
  }
}

TEST(ServerFigures, AreWhatWasAddedInBetween) {
  const MetricsText before = MetricsText::parse(
      "blindfuse_batch_queries_sum 100\nblindfuse_batch_queries_count 50\n"
      "blindfuse_queue_wait_seconds_sum 1\nblindfuse_queue_wait_seconds_count 100\n"
      "blindfuse_batch_seconds_sum 2\nblindfuse_queue_length 9\n");
  const MetricsText after = MetricsText::parse(
      "blindfuse_batch_queries_sum 180\nblindfuse_batch_queries_count 60\n"
      "blindfuse_queue_wait_seconds_sum 1.5\nblindfuse_queue_wait_seconds_count 200\n"
      "blindfuse_batch_seconds_sum 2.25\nblindfuse_queue_length 3\n"
      "blindfuse_queries_total{outcome=\"answered\"} 80\n"
      "blindfuse_queries_total{outcome=\"queue_full\"} 5\n");
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
  const MetricsText same =
      MetricsText::parse("blindfuse_batch_queries_sum 100\nblindfuse_batch_queries_count 50\n");
  const nlohmann::json figures = server_figures(same, same);
  EXPECT_EQ(figures.at("batches"), 0);
  EXPECT_TRUE(figures.at("mean_batch").is_null());
}

}  // namespace
}  // namespace blindfuse::load
