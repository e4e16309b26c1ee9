// From one modulus to another, to the nearest number; halves are rounded up.
#pragma once

#include <cstdint>

#include "src/ring/prime_field.h"

namespace blindfuse::ring {

// From 2^32 to the packing modulus: x Q / 2^32, modulo Q.
constexpr uint32_t lift(uint32_t x) {
  const uint64_t scaled = static_cast<uint64_t>(x) * kPackingModulus + (uint64_t{1} << 31);
  const auto lifted = static_cast<uint32_t>(scaled >> 32);
  return lifted == kPackingModulus ? 0 : lifted;
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
  const uint64_t raised = (static_cast<uint64_t>(x) * kPackingModulus + half) >> bits;
  return raised == kPackingModulus ? 0 : static_cast<uint32_t>(raised);
}

}  // namespace blindfuse::ring
