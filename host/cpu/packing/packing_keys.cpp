#include "host/cpu/packing/packing_keys.h"

#include <algorithm>
#include <string>

#include "src/errors.h"
#include "src/little_endian.h"
#include "src/ring/prime_field.h"

namespace blindfuse {

void check_packing_keys(std::span<const uint8_t> bytes) {
  if (bytes.size() != ring::kKeyBytes) {
    throw BadInput("packing keys have " + std::to_string(ring::kKeyBytes) + " bytes, not " +
                   std::to_string(bytes.size()));
  }
  for (size_t i = 0; i < ring::kKeyWords; ++i) {
    const uint32_t word = load_le<uint32_t>(bytes.data() + 4 * i);
    if (word >= ring::kPackingModulus) {
      throw BadInput("word " + std::to_string(i) + " of the packing keys is " +
                     std::to_string(word) + ", and has to be below " +
                     std::to_string(ring::kPackingModulus));
    }
  }
}

PackingKeys PackingKeys::read(std::span<const uint8_t> bytes) {
  check_packing_keys(bytes);
  PackingKeys keys;
  unpack(bytes, std::span<uint32_t, kWords>(keys.words_));
  return keys;
}

void PackingKeys::unpack(std::span<const uint8_t> bytes, std::span<uint32_t, kWords> words) {
  invariant(bytes.size() == ring::kKeyBytes, "packing keys have been checked");
  for (size_t half = 0; half < ring::kKeyWords / ring::kOrbit; ++half) {
    const auto to = words.subspan(half * kHalfWords, kHalfWords);
    for (size_t i = 0; i < ring::kOrbit; ++i) {
      to[i] = load_le<uint32_t>(bytes.data() + 4 * (half * ring::kOrbit + i));
    }
    std::copy_n(to.begin(), kHalfWords - ring::kOrbit, to.begin() + ring::kOrbit);
  }
}

}  // namespace blindfuse
