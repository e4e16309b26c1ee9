#include "host/engines/core_rates.h"

#include <gtest/gtest.h>

#include <cmath>

namespace blindfuse {
namespace {

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

}  // namespace
}  // namespace blindfuse
