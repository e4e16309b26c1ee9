#include "host/publish/left_out_keys.h"

#include <algorithm>
#include <cmath>

namespace blindfuse {

double upper_confidence_bound(uint64_t seen, uint64_t trials) {
  const auto count = static_cast<double>(trials);
  if (seen == 0) return std::min(1.0, 3.0 / count);
  constexpr double kNormalQuantile = 1.644854;  // 95 %
  const double shape = static_cast<double>(seen) + 1.0;
  const double root = 1.0 - 1.0 / (9.0 * shape) + kNormalQuantile / (3.0 * std::sqrt(shape));
  return std::min(1.0, shape * root * root * root / count);
}

std::optional<double> left_out_bound(const BatchCode& code,
                                     std::span<const MeasuredBatchCode> measured) {
  std::optional<double> lowest;
  for (const MeasuredBatchCode& other : measured) {
    const bool is_harder = other.code.keys_per_request >= code.keys_per_request &&
                           other.code.bucket_count <= code.bucket_count;
    if (!is_harder) continue;
    const double bound = upper_confidence_bound(other.left_out, other.requests);
    if (!lowest || bound < *lowest) lowest = bound;
  }
  return lowest;
}

std::optional<double> proven_left_out_bound(const BatchCode& code) {
  if (code.keys_per_request <= kBucketChoices) return 0.0;
  if (code.bucket_count < usual_bucket_count(code.keys_per_request)) return std::nullopt;
  return 0x1p-20;
}

}  // namespace blindfuse
