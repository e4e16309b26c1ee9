#include "src/arithmetic/ring/packing_key_format.h"

#include <string>

#include "src/arithmetic/little_endian.h"
#include "src/arithmetic/ring/prime_field.h"
#include "src/base/errors.h"

namespace blindfuse {

void check_packing_key(std::span<const uint8_t> bytes) {
  if (bytes.size() != ring::kKeyBytes) {
    throw InputError("a packing key has " + std::to_string(ring::kKeyBytes) + " bytes, not " +
                     std::to_string(bytes.size()));
  }
  for (size_t i = 0; i < ring::kKeyWords; ++i) {
    const uint32_t word = load_le<uint32_t>(bytes.data() + 4 * i);
    if (word >= ring::kPackingModulus) {
      throw InputError("word " + std::to_string(i) + " of the packing key is " +
                       std::to_string(word) + ", and has to be below " +
                       std::to_string(ring::kPackingModulus));
    }
  }
}

}  // namespace blindfuse
