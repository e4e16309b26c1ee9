// Modulus switching to and from the packing modulus Q, to the nearest number; halves are rounded up
// (docs/PROTOCOL.md, section 14).
#pragma once

#include <cstdint>

#include "src/arithmetic/ring/prime_field.h"

namespace blindfuse::ring {

// Switches from 2^bits to Q, for x below 2^bits, 1 .. 32 bits: x Q / 2^bits.
constexpr uint32_t switch_to_q(uint32_t x, unsigned bits = 32) {
  const uint64_t half = (uint64_t{1} << bits) >> 1;
  return static_cast<uint32_t>((static_cast<uint64_t>(x) * kPackingModulus + half) >> bits);
}

// Switches from Q to 2^bits, for x below Q, 1 .. 32 bits: x 2^bits / Q, modulo 2^bits. Takes the
// same time whatever x is: clients lower secret phases with it, and a division's time would depend
// on them.
constexpr uint32_t switch_from_q(uint32_t x, unsigned bits) {
  constexpr uint64_t kMissing = (uint64_t{1} << 32) - kPackingModulus;
  const uint64_t scaled = (static_cast<uint64_t>(x) << bits) + kPackingModulus / 2;
  // 2^32 is Q + kMissing, so h 2^32 + l is h Q and h * kMissing + l. The second time, this rest is
  // below 2 Q, and holds Q where the rest and kMissing come to 2^32.
  const uint64_t upper = scaled >> 32;
  const uint64_t more = upper * kMissing + static_cast<uint32_t>(scaled);
  const uint64_t rest = (more >> 32) * kMissing + static_cast<uint32_t>(more);
  const uint64_t switched = upper + (more >> 32) + ((rest + kMissing) >> 32);
  return static_cast<uint32_t>(bits == 32 ? switched : switched & ((uint64_t{1} << bits) - 1));
}

// switch_from_q(x, 8) with fewer steps. 2^32 / Q is 1 + e / Q with e = 12287, and x e / Q is x e (1
// + e / 2^32) / 2^32 up to an error that does not change the result.
constexpr uint8_t nearest_byte(uint32_t x) {
  constexpr uint64_t kMissing = (uint64_t{1} << 32) - kPackingModulus;
  const uint64_t more = x * kMissing;
  const uint64_t word = x + ((more + (more * kMissing >> 32)) >> 32);
  return static_cast<uint8_t>((word + (1u << 23)) >> 24);
}

}  // namespace blindfuse::ring
