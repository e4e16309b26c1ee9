// The arguments of the kernels for packed responses. Plain C++, for the code that starts them. All
// addresses are the device's.
#pragma once

#include <cstdint>

#include "src/arithmetic/ring/prime_field.h"
#include "src/arithmetic/ring/ring_dimension.h"

namespace blindfuse {

// Coefficients of a polynomial, and its points: 2048.
constexpr uint32_t kRingWords = static_cast<uint32_t>(ring::kDimension);

// The tables of an NTT modulo a prime (src/arithmetic/ring/ntt.h). cuda/packing/device_ntt.h
// owns them.
struct NttView {
  // 2048 each, aligned to 8 bytes.
  const ring::MontgomeryConstant* forward;
  const ring::MontgomeryConstant* inverse;
  // The point whose value the last level of the forward NTT leaves in each place: the
  // opposite of Twiddles::orbit_order(). 2048 of them, aligned to 16 bytes.
  const uint16_t* points;
  ring::MontgomeryConstant scale;  // 1 / 2048
  ring::PrimeField field;
};

}  // namespace blindfuse
