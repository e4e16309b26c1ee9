#include "bench/load/latency_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

namespace blindfuse::load {
namespace {

constexpr unsigned kSubBits = 8;  // steps of one power of two: 2^8

// Values below 2^9 are their own steps; above, the highest nine bits and how many lie below them.
uint32_t step_of(uint64_t value) {
  const auto width = static_cast<unsigned>(std::bit_width(value));
  const unsigned shift = width > kSubBits + 1 ? width - (kSubBits + 1) : 0;
  return (shift << kSubBits) + static_cast<uint32_t>(value >> shift);
}

// The largest value in a step.
uint64_t end_of(uint32_t step) {
  if (step < (2u << kSubBits)) return step;
  const unsigned shift = (step >> kSubBits) - 1;
  const uint64_t top = step - (shift << kSubBits);
  return ((top + 1) << shift) - 1;
}

}  // namespace

void LatencyHistogram::add_seconds(double seconds) {
  add_microseconds(static_cast<uint64_t>(std::llround(std::max(seconds, 0.0) * 1e6)));
}

void LatencyHistogram::add_microseconds(uint64_t microseconds) {
  const uint32_t step = step_of(microseconds);
  if (counts_.size() <= step) counts_.resize(step + 1);
  ++counts_[step];
  ++count_;
  sum_us_ += microseconds;
  max_us_ = std::max(max_us_, microseconds);
}

void LatencyHistogram::merge(const LatencyHistogram& other) {
  counts_.resize(std::max(counts_.size(), other.counts_.size()));
  std::ranges::transform(other.counts_, counts_, counts_.begin(), std::plus());
  count_ += other.count_;
  sum_us_ += other.sum_us_;
  max_us_ = std::max(max_us_, other.max_us_);
}

double LatencyHistogram::mean_ms() const {
  return count_ == 0 ? 0 : static_cast<double>(sum_us_) / static_cast<double>(count_) / 1e3;
}

double LatencyHistogram::max_ms() const { return static_cast<double>(max_us_) / 1e3; }

double LatencyHistogram::percentile_ms(double p) const {
  // The slack is for shares that binary fractions only come close to: 0.9 of 10 is the ninth.
  const double exact = p * static_cast<double>(count_);
  const auto rank = static_cast<uint64_t>(std::ceil(exact - 1e-9 * exact));
  uint64_t seen = 0;
  for (uint32_t step = 0; step < counts_.size(); ++step) {
    seen += counts_[step];
    if (seen >= rank) return static_cast<double>(std::min(end_of(step), max_us_)) / 1e3;
  }
  return 0;
}

}  // namespace blindfuse::load
