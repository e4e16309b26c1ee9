// Responses that are packed under a client's secret, from the definitions alone
// (src/arithmetic/packing_table.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/little_endian.h"
#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/ring/modulus_switch.h"
#include "src/arithmetic/ring/ntt.h"

namespace blindfuse::support {

// What the table takes off a query's products, by values: the sum over all switches and digits of
// the table's word times the digit's body of the key, under the automorphism that the switch goes
// to. keys: as they are sent.
inline std::vector<uint32_t> switched_values(PackingTable table, std::span<const uint8_t> keys) {
  using ring::kDimension;
  using ring::kOrbit;
  std::vector<uint32_t> words(ring::kKeyWords);
  for (size_t i = 0; i < words.size(); ++i) words[i] = load_le<uint32_t>(keys.data() + 4 * i);
  // Halves of products, which stay far below 2^64.
  std::vector<uint64_t> low(kDimension), high(kDimension);
  for (size_t group = 0; group < kPointGroups; ++group) {
    for (size_t number = 0; number < kKeySwitches; ++number) {
      const size_t power = key_switch_to(number).power;
      for (size_t digit = 0; digit < ring::kDigits; ++digit) {
        const uint32_t* line = table.data() + table_place(group, number, digit);
        const uint32_t* body = words.data() + digit * kDimension;
        for (size_t i = 0; i < kPointsTogether; ++i) {
          const size_t point = group * kPointsTogether + i;
          const size_t half = point / kOrbit;
          const uint64_t product =
              uint64_t{line[i]} * body[half * kOrbit + (point + power) % kOrbit];
          low[point] += static_cast<uint32_t>(product);
          high[point] += product >> 32;
        }
      }
    }
  }
  constexpr uint64_t kTwo32 = (uint64_t{1} << 32) % ring::kPackingModulus;
  std::vector<uint32_t> values(kDimension);
  for (size_t m = 0; m < kDimension; ++m) {
    const uint64_t upper = high[m] % ring::kPackingModulus * kTwo32;
    values[m] = static_cast<uint32_t>((upper + low[m]) % ring::kPackingModulus);
  }
  return values;
}

// The packed response to a query with these products, one a column.
inline std::vector<uint8_t> packed_reference(std::span<const uint32_t> products,
                                             std::span<const SharedPackingTable> tables,
                                             std::span<const uint8_t> keys, uint32_t bits) {
  const auto transform = ring::portable_ntt(ring::kPackingModulus);
  std::vector<uint32_t> lowered;
  for (size_t pack = 0; pack < tables.size(); ++pack) {
    std::vector<uint32_t> values =
        switched_values(PackingTable(tables[pack].get(), kTableWords), keys);
    transform->inverse(ring::MutablePolynomial(values.data(), ring::kDimension));
    const size_t first = pack * kPackColumns;
    for (size_t c = 0; c < std::min(kPackColumns, products.size() - first); ++c) {
      const uint32_t word =
          transform->field().subtract(ring::switch_to_q(products[first + c]), values[c]);
      lowered.push_back(restore_word(ring::switch_from_q(word, bits), bits));
    }
  }
  std::vector<uint8_t> packed(bit_sequence_bytes(lowered.size(), bits));
  write_bit_sequence(lowered, bits, packed);
  return packed;
}

}  // namespace blindfuse::support
