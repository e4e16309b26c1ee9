// Little-endian integers in byte strings, as every binary format of the protocol has them.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>

namespace blindfuse {

static_assert(std::endian::native == std::endian::little,
              "words are read and written as they lie in memory; a big-endian port must swap here");

template <std::unsigned_integral Integer>
Integer load_le(const void* bytes) {
  Integer value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <std::unsigned_integral Integer>
void store_le(void* bytes, Integer value) {
  std::memcpy(bytes, &value, sizeof value);
}

}  // namespace blindfuse
