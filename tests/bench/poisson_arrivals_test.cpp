#include "bench/load/poisson_arrivals.h"

#include <gtest/gtest.h>

namespace blindfuse::load {
namespace {

constexpr uint64_t kSeed = 7;

TEST(PoissonArrivals, MeanAndVarianceAreThoseOfTheRate) {
  constexpr double kRate = 250;
  constexpr int kCount = 100'000;
  PoissonArrivals arrivals(kRate, kSeed);
  double sum = 0, squares = 0;
  for (int i = 0; i < kCount; ++i) {
    const double gap = std::chrono::duration<double>(arrivals.next_gap()).count();
    ASSERT_GE(gap, 0);
    sum += gap;
    squares += gap * gap;
  }
  const double mean = sum / kCount;
  // The mean of that many has a standard deviation of 0.3 per cent, the variance's is 0.9.
  EXPECT_NEAR(mean * kRate, 1, 0.015) << "seed " << kSeed;
  EXPECT_NEAR((squares / kCount - mean * mean) * kRate * kRate, 1, 0.05) << "seed " << kSeed;
}

TEST(PoissonArrivals, FollowFromTheSeed) {
  PoissonArrivals a(10, kSeed), same(10, kSeed), other(10, kSeed + 1);
  const auto first = a.next_gap();
  EXPECT_EQ(first, same.next_gap());
  EXPECT_NE(first, other.next_gap());
}

}  // namespace
}  // namespace blindfuse::load
