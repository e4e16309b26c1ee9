// An NTT with the two further steps of key switching, for the instruction sets that have code.
#pragma once

#include <array>
#include <cstdint>

#include "src/arithmetic/ring/gadget.h"
#include "src/arithmetic/ring/ntt.h"

namespace blindfuse {

// The digits of a polynomial's coefficients, or these polynomials' values at the points.
using DigitPolynomials = std::array<std::array<uint32_t, ring::kDimension>, ring::kDigits>;

// Implementations agree bit for bit; any thread may use one.
class KeySwitchNtt : public ring::Ntt {
 public:
  // sum += a b / 2^32, point by point: add_products where one factor has been multiplied by 2^32.
  virtual void add_divided_products(ring::Polynomial a, ring::Polynomial b,
                                    ring::MutablePolynomial sum) const = 0;
  // ring::decompose of every coefficient; digits as numbers modulo the NTT's modulus.
  virtual void decompose(ring::Polynomial polynomial, DigitPolynomials& digits) const = 0;

 protected:
  using Ntt::Ntt;
};

}  // namespace blindfuse
