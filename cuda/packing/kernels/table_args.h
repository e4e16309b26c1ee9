// The arguments of the kernels that make packing tables. Plain C++, for the code that starts them;
// all addresses are the device's, and packs lie one after another.
#pragma once

#include <cstdint>

#include "cuda/packing/kernels/ntt_args.h"

namespace blindfuse {

constexpr uint32_t kSquareWords = kRingWords * kRingWords;

// From hint polynomials to R_g, which host/cpu/packing/packing_table_builder.h defines and calls
// traces: a square of 2048 x 2048 words for each pack.
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
  // Row g of a square: R_g at the points, g = 5^0, 5^1, ..., then their negatives.
  const uint32_t* squares;
  const uint32_t* key_masks;  // 2048 values for each digit of each key
  uint32_t* ends;             // at the points: two masks for each pack, where its chains end
  uint32_t* tables;
  uint32_t* masks;            // 2048 coefficients for each pack
  uint32_t key_switch_count;  // of each chain, from its beginning; kChainKeySwitches are all
};

}  // namespace blindfuse
