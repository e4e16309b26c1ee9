#include "bench/load/latency_histogram.h"

#include <gtest/gtest.h>

namespace blindfuse::load {
namespace {

LatencyHistogram of(std::initializer_list<uint64_t> microseconds) {
  LatencyHistogram histogram;
  for (const uint64_t value : microseconds) histogram.add_microseconds(value);
  return histogram;
}

TEST(LatencyHistogram, OfNothingIsNothing) {
  const LatencyHistogram none;
  EXPECT_EQ(none.count(), 0u);
  EXPECT_EQ(none.mean_ms(), 0);
  EXPECT_EQ(none.max_ms(), 0);
  EXPECT_EQ(none.percentile_ms(0.5), 0);
}

TEST(LatencyHistogram, PercentilesAreNearestRanks) {
  const LatencyHistogram ten = of({100, 20, 30, 10, 50, 60, 70, 80, 90, 40});
  EXPECT_EQ(ten.percentile_ms(0.5), 0.050);
  EXPECT_EQ(ten.percentile_ms(0.51), 0.060);
  EXPECT_EQ(ten.percentile_ms(0.9), 0.090);
  EXPECT_EQ(ten.percentile_ms(0.99), 0.100);
  EXPECT_EQ(ten.percentile_ms(1), 0.100);
  EXPECT_EQ(ten.percentile_ms(0.01), 0.010);
  EXPECT_EQ(ten.mean_ms(), 0.055);

  LatencyHistogram thousand;
  for (uint64_t i = 1; i <= 500; ++i) thousand.add_microseconds(i);
  for (uint64_t i = 0; i < 500; ++i) thousand.add_microseconds(1);
  EXPECT_EQ(thousand.percentile_ms(0.5), 0.001);
  EXPECT_EQ(thousand.percentile_ms(0.999), 0.499);
}

TEST(LatencyHistogram, LargeValuesAreRoundedUpByLessThanTheirStep) {
  for (uint64_t value = 1; value < uint64_t{1} << 40; value = value * 5 / 3 + 1) {
    LatencyHistogram histogram = of({value, uint64_t{1} << 41});
    const double us = histogram.percentile_ms(0.5) * 1e3;
    EXPECT_GE(us * (1 + 1e-12), static_cast<double>(value));
    EXPECT_LE(us, static_cast<double>(value) * (1 + 1.0 / 256)) << value;
  }
  // Every step ends where the next begins: what lies on both sides of an end is told apart.
  EXPECT_EQ(of({511, 9999}).percentile_ms(0.5), 0.511);
  EXPECT_EQ(of({512, 9999}).percentile_ms(0.5), 0.513);
  EXPECT_EQ(of({1023, 9999}).percentile_ms(0.5), 1.023);
  EXPECT_EQ(of({1024, 9999}).percentile_ms(0.5), 1.027);
}

TEST(LatencyHistogram, NothingIsAboveTheLargest) {
  EXPECT_EQ(of({1'000'001}).percentile_ms(0.5), 1000.001);
  EXPECT_EQ(of({1'000'001}).max_ms(), 1000.001);
}

TEST(LatencyHistogram, SecondsAreRoundedAndNeverNegative) {
  LatencyHistogram histogram;
  histogram.add_seconds(12.4e-6);
  histogram.add_seconds(-1);
  EXPECT_EQ(histogram.max_ms(), 0.012);
  EXPECT_EQ(histogram.percentile_ms(0.5), 0);
}

TEST(LatencyHistogram, MergedIsAsIfOneHadCountedAll) {
  LatencyHistogram merged = of({10, 3'000'000});
  merged.merge(of({20, 30}));
  EXPECT_EQ(merged.mean_ms(), of({10, 20, 30, 3'000'000}).mean_ms());
  EXPECT_EQ(merged.count(), 4u);
  EXPECT_EQ(merged.percentile_ms(0.75), 0.030);
  EXPECT_EQ(merged.max_ms(), 3000);
}

}  // namespace
}  // namespace blindfuse::load
