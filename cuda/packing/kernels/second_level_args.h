// The arguments of the kernels that make the second level of packed responses. Plain C++, for the
// code that starts them. All addresses are the device's.
//
// All kernels of a level take the same ones, in this order: second_column_values,
// transpose_squares, second_traces and second_products, and then second_chains.
#pragma once

#include <cstdint>

#include "cuda/packing/kernels/table_args.h"

namespace blindfuse {

// Numbers of that many bits, one after another from the lowest bit of the first word on.
struct NumberSequences {
  const uint32_t* words;  // those of query q from q * pitch on
  uint64_t pitch;
  uint32_t bits;  // 1 .. 32
};

struct SecondLevelArgs {
  NttView ring;
  // The first level's responses. Number r * column_count + k of a query's is the word of row r and
  // column k, which counts with half of all numbers taken from it. There are word_count; those
  // after them count as 0.
  NumberSequences words;
  uint64_t word_count;
  uint32_t row_count;
  uint32_t column_count;
  uint32_t pack_count;  // of 1024 columns of a row
  // Of the queries: a number for each row, of numbers.bits, and the bodies of a key.
  NumberSequences numbers;
  const uint32_t* keys;  // ring::kKeyWords, those of query q from q * key_pitch on
  uint64_t key_pitch;
  const uint32_t* blocks;     // a2_j at the points, 2048 values for each 2048 rows
  const uint32_t* key_masks;  // 2048 values for each digit
  // The chain goes through the powers power_step * i of 5, i = key_switch_count .. 0. `scale` is
  // one divided by their number.
  ring::MontgomeryConstant scale;
  uint32_t key_switch_count;
  uint32_t power_step;
  // Between the kernels. squares: kPackSquareWords for each pack of each query, those of query q
  // from q * pack_count on. products: column_count for each query.
  uint32_t* squares;
  uint32_t* products;
  // The masks of all packs, whole words, and after them the words of the row.
  uint32_t mask_bits;
  uint32_t response_bits;
  uint32_t* responses;  // second_response_words() for each query
};

// Words of 32 bits of a response, as second_chains writes it: the words of the last pack are
// rounded up to 1024.
constexpr uint64_t second_response_words(uint32_t pack_count, uint32_t mask_bits,
                                         uint32_t response_bits) {
  return uint64_t{pack_count} * (kRingWords / 32 * mask_bits + kOrbitWords / 32 * response_bits);
}

}  // namespace blindfuse
