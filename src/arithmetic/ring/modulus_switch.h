// From one modulus to another, to the nearest number; halves are rounded up.
#pragma once

#include <cstdint>

#include "src/arithmetic/ring/prime_field.h"

namespace blindfuse::ring {

// From 2^32 to the packing modulus: x Q / 2^32, modulo Q.
constexpr uint32_t lift(uint32_t x) {
  const uint64_t scaled = static_cast<uint64_t>(x) * kPackingModulus + (uint64_t{1} << 31);
  return static_cast<uint32_t>(scaled >> 32);
}

// From the packing modulus to 2^bits, 1 .. 32 of them: x 2^bits / Q, modulo 2^bits.
constexpr uint32_t lower(uint32_t x, unsigned bits) {
  const uint64_t scaled = (static_cast<uint64_t>(x) << bits) + kPackingModulus / 2;
  const uint64_t lowered = scaled / kPackingModulus;
  return static_cast<uint32_t>(bits == 32 ? lowered : lowered & ((uint64_t{1} << bits) - 1));
}

// Back, of a number below 2^bits.
constexpr uint32_t raise(uint32_t x, unsigned bits) {
  const uint64_t half = (uint64_t{1} << bits) >> 1;
  return static_cast<uint32_t>((static_cast<uint64_t>(x) * kPackingModulus + half) >> bits);
}

// lower(x, 8) without a division, whose time would tell of x. 2^32 / Q is 1 + e / Q with e = 12287,
// and x e / Q is x e (1 + e / 2^32) / 2^32 but for less than matters.
constexpr uint8_t nearest_byte(uint32_t x) {
  constexpr uint64_t kMissing = (uint64_t{1} << 32) - kPackingModulus;
  const uint64_t more = x * kMissing;
  const uint64_t word = x + ((more + (more * kMissing >> 32)) >> 32);
  return static_cast<uint8_t>((word + (1u << 23)) >> 24);
}

}  // namespace blindfuse::ring
