#include "host/cpu/packing/packing_keys.h"

#include <algorithm>

#include "src/arithmetic/little_endian.h"
#include "src/base/errors.h"

namespace blindfuse {

PackingKeys PackingKeys::read(std::span<const uint8_t> bytes) {
  check_packing_key(bytes);
  PackingKeys key;
  unpack(bytes, std::span<uint32_t, kWords>(key.words_));
  return key;
}

void PackingKeys::unpack(std::span<const uint8_t> bytes, std::span<uint32_t, kWords> words) {
  invariant(bytes.size() == ring::kKeyBytes, "a packing key has been checked");
  for (size_t half = 0; half < ring::kKeyWords / ring::kOrbit; ++half) {
    const auto to = words.subspan(half * kHalfWords, kHalfWords);
    for (size_t i = 0; i < ring::kOrbit; ++i) {
      to[i] = load_le<uint32_t>(bytes.data() + 4 * (half * ring::kOrbit + i));
    }
    std::copy_n(to.begin(), kHalfWords - ring::kOrbit, to.begin() + ring::kOrbit);
  }
}

}  // namespace blindfuse
