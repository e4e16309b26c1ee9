// What a key switch multiplies digits with: the masks or the bodies of a key.
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
  // values: the first of kOrbit values of a digit's half, below the packing modulus; those of the
  // next half are half_pitch further, first all halves of digit 0.
  ScaledKey(const uint32_t* values, size_t half_pitch);

  // sum += the digits times the polynomials under the automorphism.
  void add_products(const KeySwitchNtt& ntt, const DigitPolynomials& digits,
                    const ring::Automorphism& to, ring::MutablePolynomial sum) const;

 private:
  std::vector<uint32_t> words_;
};

}  // namespace blindfuse
