#include "cuda/scan/checksum.h"

#include <algorithm>

#include "src/arithmetic/little_endian.h"

namespace blindfuse {

uint64_t checksum(std::span<const uint8_t> bytes) {
  uint64_t sum = 0;
  const size_t whole = bytes.size() / 8;
  for (size_t i = 0; i < whole; ++i) {
    sum += (2 * i + 1) * load_le<uint64_t>(bytes.data() + 8 * i);
  }
  uint8_t last[8] = {};
  std::copy(bytes.begin() + static_cast<ptrdiff_t>(8 * whole), bytes.end(), last);
  return sum + (2 * whole + 1) * load_le<uint64_t>(last);
}

}  // namespace blindfuse
