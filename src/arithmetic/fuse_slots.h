// The rows of a key in a binary fuse filter of arity 3 or 4.
//
// Sizes: Graf and Lemire's graphs as in ChalametPIR, Algorithm 1 (its typos corrected). Rows:
// docs/PROTOCOL.md, section 4.
#pragma once

#include <array>
#include <cstdint>

#include "src/arithmetic/public_divisor.h"

namespace blindfuse {

inline constexpr uint32_t kArityMax = 4;
inline constexpr uint32_t kSegmentLengthMin = 64;
inline constexpr uint32_t kSegmentLengthMax = 1u << 18;

// R rows in segments of L; a key's rows lie in `arity` consecutive segments, one in each.
struct FuseShape {
  uint32_t arity = 3;           // 3 or 4
  uint32_t segment_length = 0;  // L, a power of two
  uint32_t row_count = 0;       // R, a multiple of L and at least arity * L

  // N, the segments in which a key's first row may lie.
  uint32_t starting_segments() const { return row_count / segment_length - (arity - 1); }

  bool operator==(const FuseShape&) const = default;
};

// Slots per key for key_count keys: the factor by which a filter is larger than its map. It is at
// least 1.125 (arity 3) or 1.075 (arity 4).
double fuse_size_factor(uint64_t key_count, uint32_t arity);

// The shape for key_count keys (at least 1). Throws InputError when that takes more than 2^31 rows.
FuseShape fuse_shape(uint64_t key_count, uint32_t arity);

// True if a filter of this shape still has room for key_count keys: round(key_count * factor) <= R.
bool fuse_fits(const FuseShape& shape, uint64_t key_count);

// MurmurHash3's 64-bit finalizer, a bijection.
constexpr uint64_t mix64(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  x ^= x >> 33;
  return x;
}

// The arity distinct rows of a key; entries from arity on are not set.
inline std::array<uint32_t, kArityMax> fuse_rows(const FuseShape& shape, uint64_t filter_seed,
                                                 uint64_t slot_hash) {
  const uint64_t a = mix64(slot_hash + filter_seed);
  const uint64_t b = mix64(a + 0x9e3779b97f4a7c15ULL);
  const uint64_t starts = uint64_t{shape.starting_segments()} * shape.segment_length;
  std::array<uint32_t, kArityMax> rows{};
  rows[0] = static_cast<uint32_t>(mulhi(a, starts));
  for (uint32_t i = 1; i < shape.arity; ++i) {
    const uint32_t offset = static_cast<uint32_t>(b >> (18 * (i - 1))) & (shape.segment_length - 1);
    rows[i] = (rows[0] + i * shape.segment_length) ^ offset;
  }
  return rows;
}

}  // namespace blindfuse
