// Modulus switching to and from the packing modulus Q, to the nearest number; halves are rounded up
// (docs/PROTOCOL.md, section 9).
#pragma once

#include <cstdint>

#include "src/arithmetic/ring/prime_field.h"

namespace blindfuse::ring {

// From 2^bits to Q, of x below 2^bits, 1 .. 32 bits: x Q / 2^bits.
constexpr uint32_t switch_to_q(uint32_t x, unsigned bits = 32) {
  const uint64_t half = (uint64_t{1} << bits) >> 1;
  return static_cast<uint32_t>((static_cast<uint64_t>(x) * kPackingModulus + half) >> bits);
}

// From Q to 2^bits, of x below Q, 1 .. 32 bits: x 2^bits / Q, modulo 2^bits.
constexpr uint32_t switch_from_q(uint32_t x, unsigned bits) {
  const uint64_t scaled = (static_cast<uint64_t>(x) << bits) + kPackingModulus / 2;
  const uint64_t switched = scaled / kPackingModulus;
  return static_cast<uint32_t>(bits == 32 ? switched : switched & ((uint64_t{1} << bits) - 1));
}

// The same of a secret x, for 1 .. 24 bits, without a division, whose time would depend on x where
// the processor has no wider product (WebAssembly). 2^32 / Q is 1 + e / Q with e = 12287, and x e /
// Q is x e (1 + e / 2^32) / 2^32 up to an error that does not change the result.
constexpr uint32_t switch_secret_from_q(uint32_t x, unsigned bits) {
  constexpr uint64_t kMissing = (uint64_t{1} << 32) - kPackingModulus;
  const uint64_t more = x * kMissing;
  const uint64_t word = x + ((more + (more * kMissing >> 32)) >> 32);
  return static_cast<uint32_t>((word + (uint64_t{1} << (31 - bits))) >> (32 - bits)) &
         ((1u << bits) - 1);
}

// switch_secret_from_q(x, 8).
constexpr uint8_t nearest_byte(uint32_t x) {
  return static_cast<uint8_t>(switch_secret_from_q(x, 8));
}

}  // namespace blindfuse::ring
