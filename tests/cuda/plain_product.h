// Queries of a test, and what a matrix of signed bytes answers by the definition.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/arithmetic/bit_sequence.h"
#include "tests/support.h"

namespace blindfuse::plain_product {

// Words such as queries have: the lowest 32 - bits bits are 0.
inline std::vector<uint32_t> query_words(support::SeededRandom& random, uint64_t rows,
                                         uint32_t bits) {
  std::vector<uint32_t> words(rows);
  for (uint32_t& word : words) word = random.u32() >> (32 - bits) << (32 - bits);
  return words;
}

// The words times the matrix, column by column, modulo 2^32.
inline std::vector<uint32_t> product(std::span<const uint8_t> columns,
                                     std::span<const uint32_t> words) {
  const uint64_t rows = words.size();
  std::vector<uint32_t> sums(columns.size() / rows);
  for (uint64_t c = 0; c < sums.size(); ++c) {
    for (uint64_t r = 0; r < rows; ++r) {
      sums[c] +=
          words[r] * static_cast<uint32_t>(int32_t{static_cast<int8_t>(columns[c * rows + r])});
    }
  }
  return sums;
}

inline std::vector<uint8_t> sequence(const std::vector<uint32_t>& words, uint32_t bits) {
  std::vector<uint8_t> bytes(bit_sequence_bytes(words.size(), bits));
  write_bit_sequence(words, bits, bytes);
  return bytes;
}

}  // namespace blindfuse::plain_product
