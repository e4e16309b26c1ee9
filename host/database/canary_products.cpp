#include "host/database/canary_products.h"

#include <algorithm>
#include <array>
#include <random>

#include "src/base/errors.h"
#include "src/system/random.h"

namespace blindfuse {
namespace {

using Seed = std::array<uint32_t, 8>;

const Seed& process_seed() {
  static const Seed seed = [] {
    Seed drawn{};
    fill_from_system({reinterpret_cast<uint8_t*>(drawn.data()), sizeof drawn});
    return drawn;
  }();
  return seed;
}

}  // namespace

std::vector<uint32_t> canary_words(uint64_t row_count, uint32_t query_bits) {
  // Not secret: what counts is that no fault was made for these words.
  std::seed_seq sequence(process_seed().begin(), process_seed().end());
  std::mt19937 numbers(sequence);
  std::vector<uint32_t> words(row_count);
  const uint32_t mask = ~uint32_t{0} << (32 - query_bits);
  for (uint32_t& word : words) word = static_cast<uint32_t>(numbers()) & mask;
  return words;
}

std::vector<uint32_t> product_weights(uint64_t column_count) {
  std::vector<uint32_t> weights(column_count);
  fill_from_system({reinterpret_cast<uint8_t*>(weights.data()), weights.size() * sizeof(uint32_t)});
  for (uint32_t& weight : weights) weight |= 1;
  return weights;
}

CanaryProducts::CanaryProducts(std::span<const uint32_t> words)
    : low_(words.size()), high_(words.size()) {
  for (size_t r = 0; r < words.size(); ++r) {
    low_[r] = static_cast<int16_t>(words[r]);
    high_[r] = static_cast<int16_t>((words[r] - static_cast<uint32_t>(int32_t{low_[r]})) >> 16);
  }
}

void CanaryProducts::multiply(std::span<const uint8_t> columns,
                              std::span<uint32_t> products) const {
  const size_t rows = low_.size();
  invariant(columns.size() == products.size() * rows, "whole columns");
  // Bytes as numbers of 16 bits, of which a cache keeps a block.
  constexpr size_t kBlock = 256;
  std::array<int16_t, kBlock> bytes;
  for (size_t c = 0; c < products.size(); ++c) {
    const uint8_t* const column = columns.data() + c * rows;
    uint32_t low = 0, high = 0;
    for (size_t first = 0; first < rows; first += kBlock) {
      const size_t count = std::min(kBlock, rows - first);
      for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<int8_t>(column[first + i]);
      // Of a block no sum leaves 31 bits and a sign: 2^8 products of at most 2^15 times 2^7.
      int32_t block_low = 0, block_high = 0;
      for (size_t i = 0; i < count; ++i) {
        block_low += int32_t{low_[first + i]} * int32_t{bytes[i]};
        block_high += int32_t{high_[first + i]} * int32_t{bytes[i]};
      }
      low += static_cast<uint32_t>(block_low);
      high += static_cast<uint32_t>(block_high);
    }
    products[c] = low + (high << 16);
  }
}

}  // namespace blindfuse
