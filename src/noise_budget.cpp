#include "src/noise_budget.h"

#include <algorithm>
#include <cmath>

namespace blindfuse {
namespace {

constexpr double kTernaryVariance = 2.0 / 3.0;
constexpr double kLargestByte = 128.0;          // matrix bytes are signed
constexpr double kDecodingBound = 8'388'608.0;  // 2^23: half the distance of two plaintexts

}  // namespace

double rounding_variance(uint32_t bits) {
  if (bits == 32) return 0;
  return (std::exp2(2.0 * (32.0 - bits)) + 2.0) / 12.0;
}

NoiseBudget noise_budget(uint64_t row_count, uint32_t dimension, uint32_t record_bytes,
                         uint32_t query_bits, uint32_t response_bits, uint32_t hint_bits) {
  NoiseBudget budget;
  budget.query_variance = kLargestByte * kLargestByte * static_cast<double>(row_count) *
                          (kTernaryVariance + rounding_variance(query_bits));
  budget.hint_variance = kTernaryVariance * dimension * rounding_variance(hint_bits);
  budget.response_bound = response_bits == 32 ? 0.0 : std::exp2(31.0 - response_bits);
  const double room = kDecodingBound - budget.response_bound;
  if (room <= 0) return budget;
  const double variance = budget.query_variance + budget.hint_variance;
  const double log2_tail = 1.0 - room * room / (2.0 * variance) / std::log(2.0);
  budget.log2_failure = std::min(0.0, log2_tail + std::log2(static_cast<double>(record_bytes)));
  return budget;
}

}  // namespace blindfuse
