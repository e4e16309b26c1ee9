#include "bench/load/latency_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

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
  ++counts_[step_of(microseconds)];
  ++count_;
  sum_us_ += microseconds;
  max_us_ = std::max(max_us_, microseconds);
}

void LatencyHistogram::merge(const LatencyHistogram& other) {
  for (const auto& [step, count] : other.counts_) counts_[step] += count;
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
  for (const auto& [step, count] : counts_) {
    seen += count;
    if (seen >= rank) return static_cast<double>(std::min(end_of(step), max_us_)) / 1e3;
  }
  return 0;
}

nlohmann::json LatencyHistogram::to_json() const {
  return {{"counts", counts_}, {"sum_us", sum_us_}, {"max_us", max_us_}};
}

LatencyHistogram LatencyHistogram::from_json(const nlohmann::json& json) {
  LatencyHistogram histogram;
  json.at("counts").get_to(histogram.counts_);
  for (const auto& [step, count] : histogram.counts_) histogram.count_ += count;
  json.at("sum_us").get_to(histogram.sum_us_);
  json.at("max_us").get_to(histogram.max_us_);
  return histogram;
}

}  // namespace blindfuse::load
