#include "host/engines/core_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace blindfuse {
namespace {

using ::testing::HasSubstr;

// How fast the machine is does not matter here.
TEST(CoreRates, ArePositive) {
  const CoreRates rates = measure_core_rates();
  for (const double rate :
       {rates.scan_alone_bytes_per_second, rates.scan_batch_multiply_adds_per_second,
        rates.pack_alone_bytes_per_second, rates.pack_batch_multiply_adds_per_second,
        rates.memory_bytes_per_second, rates.second_switch_seconds, rates.second_column_seconds,
        rates.second_traces_seconds, rates.second_short_trace_seconds}) {
    EXPECT_TRUE(std::isfinite(rate));
    EXPECT_GT(rate, 0);
  }
}

// Every machine runs the portable ones, and every call names the same.
TEST(CoreRates, AreOfKernelsWithNames) {
  EXPECT_THAT(rate_kernels(), HasSubstr("scan "));
  EXPECT_THAT(rate_kernels(), HasSubstr("portable, packing "));
  EXPECT_TRUE(rate_kernels().ends_with(" portable"));
  EXPECT_EQ(rate_kernels(), rate_kernels());
}

}  // namespace
}  // namespace blindfuse
