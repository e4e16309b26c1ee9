// The arguments of the kernels that make packing tables. Plain C++, for the code that starts them;
// all addresses are the device's, and packs lie one after another.
#pragma once

#include <cstdint>

#include "cuda/packing/kernels/ntt_args.h"
#include "src/arithmetic/packing_table.h"

namespace blindfuse {

// The columns of a pack, and the powers of 5.
constexpr uint32_t kOrbitWords = static_cast<uint32_t>(ring::kOrbit);
static_assert(kPackColumns == ring::kOrbit);

// Of a pack: two squares of 1024 x 1024 words next to each other, one for each half of the points.
// They are 1024 rows of 2048 words.
constexpr uint32_t kPackSquareWords = kOrbitWords * kRingWords;

// From hint polynomials to R_g (cuda/packing/kernels/traces.cuh): kPackSquareWords for each pack.
struct TraceArgs {
  NttView ring;
  // Word i * column_count + c is coefficient i of column c's, modulo 2^32.
  const uint32_t* hints;
  uint64_t column_count;
  uint32_t* squares;
};

// From traces to tables (src/arithmetic/packing_table.h) and masks.
struct TableArgs {
  NttView ring;
  // Row i of a pack's: R_g at the points, g = 5^i.
  const uint32_t* squares;
  const uint32_t* key_masks;  // 2048 values for each digit
  uint32_t* tables;
  uint32_t* masks;            // 2048 coefficients for each pack
  uint32_t key_switch_count;  // from the first; kKeySwitches are all
};

}  // namespace blindfuse
