#include "src/arithmetic/fuse_slots.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "src/base/errors.h"

namespace blindfuse {
namespace {

uint64_t capacity_for(uint64_t key_count, uint32_t arity) {
  const double keys = static_cast<double>(key_count);
  return static_cast<uint64_t>(std::floor(keys * fuse_size_factor(key_count, arity) + 0.5));
}

uint32_t segment_length_for(uint64_t key_count, uint32_t arity) {
  const double keys = static_cast<double>(key_count);
  const double exponent = arity == 3 ? std::floor(std::log(keys) / std::log(3.33) + 2.25)
                                     : std::floor(std::log(keys) / std::log(2.91) - 0.5);
  // Below 64 the peeling gains nothing and rows would no longer come in whole panels of 64.
  const double length = std::exp2(std::clamp(exponent, 0.0, 40.0));
  return static_cast<uint32_t>(
      std::clamp(length, double{kSegmentLengthMin}, double{kSegmentLengthMax}));
}

}  // namespace

double fuse_size_factor(uint64_t key_count, uint32_t arity) {
  // One key has no logarithm to divide by; it gets the factor of two.
  const double log_keys = std::log(static_cast<double>(std::max<uint64_t>(key_count, 2)));
  if (arity == 3) {
    return std::max(1.125, 0.875 + 0.25 * std::max(1.0, std::log(1e6) / log_keys));
  }
  return std::max(1.075, 0.77 + 0.305 * std::max(1.0, std::log(6e5) / log_keys));
}

FuseShape fuse_shape(uint64_t key_count, uint32_t arity) {
  const uint64_t length = segment_length_for(key_count, arity);
  const uint64_t segments =
      std::max<uint64_t>((capacity_for(key_count, arity) + length - 1) / length, arity);
  if (segments * length > (uint64_t{1} << 31)) {
    throw InputError(std::to_string(key_count) +
                     " keys in one shard need more than 2^31 rows; use more shards");
  }
  return {arity, static_cast<uint32_t>(length), static_cast<uint32_t>(segments * length)};
}

bool fuse_fits(const FuseShape& shape, uint64_t key_count) {
  return capacity_for(std::max<uint64_t>(key_count, 1), shape.arity) <= shape.row_count;
}

}  // namespace blindfuse
