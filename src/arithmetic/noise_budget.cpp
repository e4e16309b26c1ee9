#include "src/arithmetic/noise_budget.h"

#include <algorithm>
#include <cmath>

#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/ring/gadget.h"
#include "src/arithmetic/ring/ring_dimension.h"

namespace blindfuse {
namespace {

// Of a number that is uniform on -max..max.
constexpr double uniform_variance(uint32_t max) { return max * (max + 1.0) / 3.0; }

constexpr double kTernaryVariance = uniform_variance(1);
constexpr double kLargestByte = 128.0;          // matrix bytes are signed
constexpr double kDecodingBound = 8'388'608.0;  // 2^23: half the distance of two plaintexts
// Digits are the same for every query of an epoch, so that each column has a variance of its own: a
// sum of 6144 squares, and a quarter of it of 2048 more, whose standard deviation is 1.6 % of their
// mean. A tenth more is six times that.
constexpr double kWorstColumn = 1.1;

}  // namespace

double rounding_variance(uint32_t bits) {
  if (bits == 32) return 0;
  return (std::exp2(2.0 * (32.0 - bits)) + 2.0) / 12.0;
}

double packing_variance() {
  constexpr double kPairs = kKeySwitches * ring::kDimension;  // of a digit and a key's coefficient
  // Digits, and what is rounded away, are practically uniform: masks depend on the public seed.
  const double digit_variance = std::exp2(2.0 * ring::kDigitBits) / 12.0;
  const double rest_variance = std::exp2(2.0 * ring::kDroppedBits) / 12.0;
  const double mean = kPairs * kTernaryVariance * (ring::kDigits * digit_variance + rest_variance);
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
  const double room = kDecodingBound - budget.response_bound;
  if (room <= 0) return budget;
  const double variance = budget.query_variance + budget.hint_variance + budget.packing_variance;
  const double log2_tail = 1.0 - room * room / (2.0 * variance) / std::log(2.0);
  budget.log2_failure = std::min(0.0, log2_tail + std::log2(static_cast<double>(record_bytes)));
  return budget;
}

}  // namespace blindfuse
