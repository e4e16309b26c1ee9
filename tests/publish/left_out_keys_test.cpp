#include "host/publish/left_out_keys.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

namespace blindfuse {
namespace {

// Half the 95 % quantile of the chi-squared distribution with 2 seen + 2 degrees of freedom, from
// tables of it.
TEST(LeftOutKeys, ConfidenceBoundsAreThoseOfTheTables) {
  for (const auto& [seen, quantile] : std::vector<std::pair<uint64_t, double>>{
           {1, 9.488 / 2}, {2, 12.592 / 2}, {5, 21.026 / 2}, {9, 31.410 / 2}, {14, 43.773 / 2}}) {
    EXPECT_NEAR(upper_confidence_bound(seen, 1'000'000), quantile * 1e-6, 0.01 * quantile * 1e-6)
        << seen;
  }
  EXPECT_DOUBLE_EQ(upper_confidence_bound(0, 3'000'000), 1e-6);
  EXPECT_EQ(upper_confidence_bound(0, 1), 1.0);
  EXPECT_EQ(upper_confidence_bound(5, 5), 1.0);
}

TEST(LeftOutKeys, AreBoundByAsManyKeysInAsFewBuckets) {
  const std::vector<MeasuredBatchCode> measured = {{{16, 32}, 10'000'000, 6},
                                                   {{64, 96}, 30'000'000, 0}};
  const double sixteen = upper_confidence_bound(6, 10'000'000);
  EXPECT_EQ(left_out_bound({16, 32}, measured), sixteen);
  EXPECT_EQ(left_out_bound({10, 32}, measured), sixteen);
  EXPECT_EQ(left_out_bound({16, 95}, measured), sixteen);
  EXPECT_EQ(left_out_bound({64, 96}, measured), 1e-7);
  EXPECT_EQ(left_out_bound({16, 96}, measured), 1e-7);
  // More of the same ratio happens less often, but a count for many bounds nothing for few.
  EXPECT_EQ(left_out_bound({16, 31}, measured), std::nullopt);
  EXPECT_EQ(left_out_bound({20, 40}, measured), std::nullopt);
  EXPECT_EQ(left_out_bound({65, 98}, measured), std::nullopt);
  EXPECT_EQ(left_out_bound({16, 32}, {}), std::nullopt);
}

TEST(LeftOutKeys, AreBoundByProofWithAsManyBucketsAsUsual) {
  EXPECT_EQ(proven_left_out_bound({2, 12}), 0.0);
  EXPECT_EQ(proven_left_out_bound({3, 3}), 0.0);
  for (const BatchCode& code : {BatchCode{4, 16}, BatchCode{10, 28}, BatchCode{16, 32},
                                BatchCode{64, 96}, BatchCode{64, 97}, BatchCode{1024, 1536}}) {
    EXPECT_EQ(proven_left_out_bound(code), std::exp2(-20.0)) << code.keys_per_request;
  }
  EXPECT_EQ(proven_left_out_bound({16, 31}), std::nullopt);
  EXPECT_EQ(proven_left_out_bound({64, 95}), std::nullopt);
}

}  // namespace
}  // namespace blindfuse
