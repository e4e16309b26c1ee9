// The loop over a group of a packing table, for the files with code for an instruction set.
//
// Roofline: 3069 lines of 64 bytes are read once for all queries, 16 products each for each query;
// one query is bound by memory wherever 16 products take less than 64 bytes do.
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/cpu/packing/packing_keys.h"
#include "host/cpu/packing/ring_kernels.h"
#include "src/arithmetic/packing_table.h"

namespace blindfuse {

// Calls add(line, key words, place) for every digit of every switch, in the order of the table.
// `line` is 16 words of the table. `place` is the index of the 16 words in any query's key that are
// multiplied with them. There are 3069 calls.
template <class Add>
inline void for_each_line(const uint32_t* line, size_t point, const Add& add) {
  constexpr size_t kHalf = PackingKeys::kHalfWords;
  const size_t half = point / ring::kOrbit;
  for (size_t number = 0; number < kKeySwitches; ++number) {
    const size_t place = half * kHalf + (point + key_switch_to(number).power) % ring::kOrbit;
#pragma GCC unroll 3
    for (size_t k = 0; k < ring::kDigits; ++k) {
      add(line, place + 2 * kHalf * k);
      line += kPointsTogether;
    }
  }
}

}  // namespace blindfuse
