#include "src/arithmetic/noise_budget.h"

#include <algorithm>
#include <cmath>

#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/ring/gadget.h"
#include "src/arithmetic/ring/ring_dimension.h"

namespace blindfuse {
namespace {

// The variance of a number that is uniform on -max..max.
constexpr double uniform_variance(uint32_t max) { return max * (max + 1.0) / 3.0; }

constexpr double kTernaryVariance = uniform_variance(1);
constexpr double kLargestByte = 128.0;          // matrix bytes are signed
constexpr double kDecodingBound = 8'388'608.0;  // 2^23: half the distance of two plaintexts
// Digits are the same for every query of an epoch, so that each column has a variance of its own: a
// sum of 6144 squares, and a quarter of it of 2048 more, whose standard deviation is 1.6 % of their
// mean. A tenth more is six times that.
constexpr double kWorstColumn = 1.1;

// log2 of the probability that one of `count` sub-Gaussian numbers of this variance leaves the
// room.
double log2_tail(double room, double variance, uint32_t count) {
  if (room <= 0) return 0;
  const double tail = 1.0 - room * room / (2.0 * variance) / std::log(2.0);
  return std::min(0.0, tail + std::log2(static_cast<double>(count)));
}

}  // namespace

double rounding_variance(uint32_t bits) {
  if (bits == 32) return 0;
  return (std::exp2(2.0 * (32.0 - bits)) + 2.0) / 12.0;
}

double packing_variance() { return packing_variance(kKeySwitches); }

double packing_variance(uint32_t key_switches) {
  const double pairs = key_switches * static_cast<double>(ring::kDimension);
  // Digits, and what is rounded away, are practically uniform: masks depend on the public seed.
  const double digit_variance = std::exp2(2.0 * ring::kDigitBits) / 12.0;
  const double rest_variance = std::exp2(2.0 * ring::kDroppedBits) / 12.0;
  // Pairs of a digit and a key's coefficient.
  const double mean = pairs * kTernaryVariance * (ring::kDigits * digit_variance + rest_variance);
  return kWorstColumn * mean;
}

NoiseBudget noise_budget(uint64_t row_count, uint32_t dimension, uint32_t record_bytes,
                         uint32_t query_bits, uint32_t response_bits, uint32_t hint_bits,
                         double packing, uint32_t error_max) {
  NoiseBudget budget;
  budget.query_variance = kLargestByte * kLargestByte * static_cast<double>(row_count) *
                          (uniform_variance(error_max) + rounding_variance(query_bits));
  budget.hint_variance = kTernaryVariance * dimension * rounding_variance(hint_bits);
  budget.packing_variance = packing;
  budget.response_bound = response_bits == 32 ? 0.0 : std::exp2(31.0 - response_bits);
  budget.log2_failure = log2_tail(
      kDecodingBound - budget.response_bound,
      budget.query_variance + budget.hint_variance + budget.packing_variance, record_bytes);
  return budget;
}

SecondNoise second_noise(uint64_t row_count, uint32_t record_bytes, uint32_t word_bits,
                         uint32_t query_bits, uint32_t mask_bits, uint32_t response_bits,
                         uint32_t key_switches) {
  SecondNoise noise;
  const double largest_word = std::exp2(word_bits - 1.0);
  noise.query_variance = largest_word * largest_word * static_cast<double>(row_count) *
                         (kTernaryVariance + rounding_variance(query_bits));
  noise.mask_variance = kTernaryVariance * ring::kDimension * rounding_variance(mask_bits);
  noise.packing_variance = packing_variance(key_switches);
  noise.response_bound = response_bits == 32 ? 0.0 : std::exp2(31.0 - response_bits);
  noise.log2_failure =
      log2_tail(std::exp2(31.0 - word_bits) - noise.response_bound,
                noise.query_variance + noise.mask_variance + noise.packing_variance, record_bytes);
  return noise;
}

double log2_of_either(double a, double b) {
  const double more = std::max(a, b), less = std::min(a, b);
  return std::min(0.0, more + std::log2(1 + std::exp2(less - more)));
}

}  // namespace blindfuse
