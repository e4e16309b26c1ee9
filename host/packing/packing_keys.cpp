#include "host/packing/packing_keys.h"

#include <algorithm>
#include <string>

#include "src/errors.h"
#include "src/little_endian.h"
#include "src/ring/prime_field.h"

namespace blindfuse {

PackingKeys PackingKeys::read(std::span<const uint8_t> bytes) {
  if (bytes.size() != kKeyBytes) {
    throw BadInput("packing keys have " + std::to_string(kKeyBytes) + " bytes, not " +
                   std::to_string(bytes.size()));
  }
  PackingKeys keys;
  for (size_t i = 0; i < kKeyWords; ++i) {
    const uint32_t word = load_le<uint32_t>(bytes.data() + 4 * i);
    if (word >= ring::kPackingModulus) {
      throw BadInput("word " + std::to_string(i) + " of the packing keys is " +
                     std::to_string(word) + ", and has to be below " +
                     std::to_string(ring::kPackingModulus));
    }
    keys.words_[i / ring::kOrbit * kHalfWords + i % ring::kOrbit] = word;
  }
  for (size_t half = 0; half < kKeyWords / ring::kOrbit; ++half) {
    const auto begin = keys.words_.begin() + static_cast<std::ptrdiff_t>(half * kHalfWords);
    std::copy_n(begin, kHalfWords - ring::kOrbit, begin + ring::kOrbit);
  }
  return keys;
}

}  // namespace blindfuse
