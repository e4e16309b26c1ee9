// The masks or the bodies of a key, as factors for the digits of a key switch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "host/cpu/packing/key_switch_ntt.h"
#include "src/arithmetic/ring/automorphism.h"
#include "src/arithmetic/ring/gadget.h"
#include "src/arithmetic/ring/ring_dimension.h"

namespace blindfuse {

// Multiplies numbers below the packing modulus by 2^32 modulo it, as factors for
// KeySwitchNtt::add_divided_products.
void multiply_by_two32(std::span<uint32_t> words);

// A polynomial for each digit, in the evaluation domain of Ntt, times 2^32 modulo the packing
// modulus. Each half of the points is there twice in a row, so that a half that an automorphism has
// rotated is in one piece: 48 KiB.
class ScaledKey {
 public:
  // values: kOrbit numbers below the packing modulus for each half, half_pitch apart: both halves
  // of digit 0, then those of digit 1, and so on.
  ScaledKey(const uint32_t* values, size_t half_pitch);

  // sum += the digits times the polynomials under the automorphism. Any thread.
  void add_products(const KeySwitchNtt& ntt, const DigitPolynomials& digits,
                    const ring::Automorphism& to, ring::MutablePolynomial sum) const;

 private:
  std::vector<uint32_t> words_;
};

}  // namespace blindfuse
