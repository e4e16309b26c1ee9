// The sizes of a packed response's second level, from which a client gets the words of its own
// shard alone (docs/PROTOCOL.md, section 20).
//
// The lowered bodies of the first level, response_bits of each of the S W columns, are a matrix of
// ceil(S / g) rows of g W entries: g shards lie side by side in a row. A query asks for one row,
// and the response is that row, packed again under the query's own key.
#pragma once

#include <cstdint>

namespace blindfuse {

// The most bits of a word of the first level: entries of 2^20 in magnitude, for which an engine's
// sums have room. The noise allows fewer (docs/PARAMETERS.md, section 7).
inline constexpr uint32_t kSecondWordBitsMax = 21;

struct SecondLevel {
  uint32_t group_shards = 1;    // g
  uint32_t query_bits = 32;     // of each of a query's numbers for rows
  uint32_t mask_bits = 32;      // of each of the 2048 coefficients of a mask
  uint32_t response_bits = 32;  // of each word
  // m, a power of two of at least g W, where a second key for X^(5^(1024 / m)) goes with a query,
  // and m - 1 key switches pack a row. 0: none does, and 1023 of the first key's do.
  uint32_t key_order = 0;

  bool operator==(const SecondLevel&) const = default;
};

}  // namespace blindfuse
