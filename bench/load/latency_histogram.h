// Latencies in little memory, whatever their number, and percentiles of them.
#pragma once

#include <cstdint>
#include <vector>

namespace blindfuse::load {

// Counts microseconds: exactly below 512, above in steps of less than 1/256 of the value.
class LatencyHistogram {
 public:
  void add_seconds(double seconds);
  void add_microseconds(uint64_t microseconds);
  void merge(const LatencyHistogram& other);

  uint64_t count() const { return count_; }
  double mean_ms() const;  // 0 of none, as the next two
  double max_ms() const;

  // The nearest rank: the smallest value that at least a share of `p` (above 0, at most 1) of all
  // does not exceed, rounded up to the end of its step.
  double percentile_ms(double p) const;

 private:
  std::vector<uint64_t> counts_;  // of steps
  uint64_t count_ = 0;
  uint64_t sum_us_ = 0;
  uint64_t max_us_ = 0;
};

}  // namespace blindfuse::load
