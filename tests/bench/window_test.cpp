#include "bench/load/window.h"

#include <gtest/gtest.h>

namespace blindfuse::load {
namespace {

Window some(uint64_t number) {
  Window window;
  window.seconds = static_cast<double>(number);
  window.requests = number;
  window.lookups = 4 * number;
  window.left_out = 7 * number;
  window.latency.add_microseconds(number);
  window.refused.add_microseconds(2 * number);
  window.errors = {{"503", number}, {std::to_string(number), 1}};
  window.bytes_up = 100 * number;
  window.bytes_down = 20 * number;
  window.slow_closed = number;
  window.epoch_changes = number;
  window.paused_seconds = static_cast<double>(number) / 2;
  return window;
}

TEST(Window, MergesCountsOfTheSameInterval) {
  Window sum = some(3);
  sum.merge(some(5));
  EXPECT_EQ(sum.seconds, 5);
  EXPECT_EQ(sum.requests, 8u);
  EXPECT_EQ(sum.lookups, 32u);
  EXPECT_EQ(sum.left_out, 56u);
  EXPECT_EQ(sum.latency.count(), 2u);
  EXPECT_EQ(sum.refused.max_ms(), 0.010);
  EXPECT_EQ(sum.errors, (std::map<std::string, uint64_t>{{"503", 8}, {"3", 1}, {"5", 1}}));
  EXPECT_EQ(sum.bytes_up, 800u);
  EXPECT_EQ(sum.slow_closed, 8u);
  EXPECT_EQ(sum.epoch_changes, 8u);
  EXPECT_EQ(sum.paused_seconds, 4);
  EXPECT_DOUBLE_EQ(sum.lookups_per_second(), 6.4);
  EXPECT_DOUBLE_EQ(sum.requests_per_second(), 1.6);
  EXPECT_DOUBLE_EQ(sum.bytes_per_lookup(), 30);
}

TEST(Window, OfNoTimeHasNoRate) {
  EXPECT_EQ(Window().lookups_per_second(), 0);
  EXPECT_EQ(Window().requests_per_second(), 0);
  EXPECT_EQ(Window().bytes_per_lookup(), 0);
}

}  // namespace
}  // namespace blindfuse::load
