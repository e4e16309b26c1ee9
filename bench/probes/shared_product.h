// Products of random bytes in shared memory, repeated: the layout of the bytes, the sums of each
// thread, and the results. Plain C++, for the device and for tests.
//
// A block has two warpgroups, each with 64 rows of A, and one B of N rows for both; all rows have
// 128 bytes, and there are four sets of them. A round multiplies every set once.
#pragma once

#include <cstdint>

namespace blindfuse::probes {

inline constexpr uint32_t kProductThreads = 256;
inline constexpr uint32_t kProductSets = 4;
inline constexpr uint32_t kRowsOfA = 128;
inline constexpr uint32_t kRowWords = 32;
inline constexpr uint32_t kRowBytes = 4 * kRowWords;

constexpr uint32_t set_bytes(uint32_t columns) { return (kRowsOfA + columns) * kRowBytes; }

// Multiply-adds of a block in a round.
constexpr uint64_t round_multiply_adds(uint32_t columns) {
  return uint64_t{kProductSets} * kRowsOfA * columns * kRowBytes;
}

// A word of a set; rows of A come first, then those of B. Its bytes are signed, and look random
// (the finalizer of MurmurHash3).
constexpr uint32_t random_word(uint32_t set, uint32_t row, uint32_t word) {
  uint32_t h = (set * 512 + row) * kRowWords + word + 1;
  h ^= h >> 16;
  h *= 0x85eb'ca6b;
  h ^= h >> 13;
  h *= 0xc2b2'ae35;
  return h ^ h >> 16;
}

// The word's place in its set, with the 128-byte swizzle: the 16-byte chunks of a row are
// exclusive-or-ed with the row's number modulo 8 (cuda/scan/kernels/wgmma_descriptor.h).
constexpr uint32_t word_offset(uint32_t row, uint32_t word) {
  return row * kRowBytes + (word / 4 ^ row % 8) * 16 + word % 4 * 4;
}

struct SumPlace {
  uint32_t row;  // of A
  uint32_t column;
};
// PTX ISA, "Register Fragments and Shared Memory Matrix Layouts" of wgmma, D of m64nNk32: each warp
// of four has 16 rows; a thread has of every 8 columns two neighbouring ones in row lane / 4, and
// the same two in the row that is 8 further down.
constexpr SumPlace sum_place(uint32_t thread, uint32_t index) {
  const uint32_t lane = thread % 32;
  return {thread / 32 * 16 + lane / 4 + index % 4 / 2 * 8,
          index / 4 * 8 + lane % 4 * 2 + index % 2};
}

// Weights are odd, so that no bit of a wrong sum is lost, and differ from place to place.
constexpr uint32_t sum_weight(const SumPlace& place, uint32_t columns) {
  return 2 * (place.row * columns + place.column) + 1;
}

// The hash of a block after one round: all of its sums, each times its weight, modulo 2^32. After n
// rounds it is n times as much.
uint32_t expected_hash(uint32_t columns);

}  // namespace blindfuse::probes
