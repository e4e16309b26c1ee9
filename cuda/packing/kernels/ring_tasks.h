// What the kernels of packed responses are given. Plain C++, for those who start them; all
// addresses are the device's.
#pragma once

#include <cstdint>

#include "src/arithmetic/ring/prime_field.h"
#include "src/arithmetic/ring/ring_dimension.h"

namespace blindfuse {

// Coefficients of a polynomial, and its points: 2048.
constexpr uint32_t kRingWords = static_cast<uint32_t>(ring::kDimension);

// What transforms modulo a prime compute with (src/arithmetic/ring/butterflies.h);
// cuda/packing/device_ring.h owns the tables.
struct RingView {
  // 2048 each, aligned to 8 bytes.
  const ring::Factor* forward;
  const ring::Factor* inverse;
  // The point whose value the last level of the forward transform leaves in each place: the
  // opposite of Butterflies::places(). 2048 of them, aligned to 16 bytes.
  const uint16_t* points;
  ring::Factor scale;  // 1 / 2048
  ring::PrimeField field;
};

}  // namespace blindfuse
