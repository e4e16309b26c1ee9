// The sizes and public words of a packed response's second level, for an engine (docs/PROTOCOL.md,
// section 20).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/layout.h"
#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/ring/packing_key_format.h"

namespace blindfuse {

struct SecondLevelSpec {
  uint32_t row_count = 0;       // ceil(S / g), of the matrix of the first level's words
  uint32_t column_count = 0;    // g W; of a short key at most its order
  uint32_t word_bits = 32;      // of each of those words
  uint32_t query_bits = 32;     // of each of a query's numbers for rows
  uint32_t mask_bits = 32;      // of each of the 2048 coefficients of a mask
  uint32_t response_bits = 32;  // of each word of the second response
  // m, a power of two, where a short key goes with a query. 0: the first level's key serves.
  uint32_t key_order = 0;
  // a2_j for each 2048 rows, 2048 words each, in the evaluation domain of ring::Ntt.
  std::span<const uint32_t> blocks = {};
  // The masks of the key that packs rows, ring::kKeyWords in the evaluation domain: the short
  // key's where there is one.
  std::span<const uint32_t> key_masks = {};

  // Packs of up to 1024 columns, of which a row consists.
  uint32_t pack_count() const {
    return (column_count + static_cast<uint32_t>(kPackColumns) - 1) /
           static_cast<uint32_t>(kPackColumns);
  }
  uint32_t block_count() const {
    return (row_count + static_cast<uint32_t>(ring::kDimension) - 1) /
           static_cast<uint32_t>(ring::kDimension);
  }
  uint32_t key_switches() const {
    return key_order > 0 ? key_order - 1 : static_cast<uint32_t>(kKeySwitches);
  }
  // The bytes that a query has for the second level: the short key, if there is one, and then the
  // numbers for rows, a bit sequence.
  uint64_t key_bytes() const { return key_order > 0 ? ring::kKeyBytes : 0; }
  uint64_t query_bytes() const { return key_bytes() + bit_sequence_bytes(row_count, query_bits); }
  // The masks of all packs, each a bit sequence, and the words of the row, one bit sequence.
  uint64_t response_bytes() const {
    return pack_count() * bit_sequence_bytes(ring::kDimension, mask_bits) +
           bit_sequence_bytes(column_count, response_bits);
  }
};

// The layout has a second level. Its public polynomials outlive the result.
inline SecondLevelSpec second_level_spec(const Layout& layout,
                                         std::span<const uint32_t> blocks = {},
                                         std::span<const uint32_t> key_masks = {}) {
  const SecondLevel& second = *layout.second;
  return {layout.second_row_count(),
          layout.second_column_count(),
          layout.response_bits,
          second.query_bits,
          second.mask_bits,
          second.response_bits,
          second.key_order,
          blocks,
          key_masks};
}

}  // namespace blindfuse
