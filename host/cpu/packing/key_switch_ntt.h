// An NTT with the further steps of key switching, for the instruction sets that have code.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/arithmetic/ring/gadget.h"
#include "src/arithmetic/ring/ntt.h"

namespace blindfuse {

// The digits of a polynomial's coefficients, or these polynomials' values at the points.
using DigitPolynomials = std::array<std::array<uint32_t, ring::kDimension>, ring::kDigits>;

// Products of digits with a key, in one half of the points. For kernels, which are compiled for
// other processors and so use only plain memory.
struct DigitProducts {
  const uint32_t* digits[ring::kDigits];  // kOrbit values of each
  const uint32_t* keys[ring::kDigits];    // as many
  uint32_t* sum;                          // as many
};

// Implementations agree bit for bit; any thread may use one.
class KeySwitchNtt : public ring::Ntt {
 public:
  // forward(), for a polynomial whose coefficients are zero from number `count` on: the fewer there
  // are, the faster.
  virtual void forward_first(ring::MutablePolynomial polynomial, size_t count) const = 0;
  // sum += a b / 2^32, point by point: add_products where one factor has been multiplied by 2^32.
  virtual void add_divided_products(ring::Polynomial a, ring::Polynomial b,
                                    ring::MutablePolynomial sum) const = 0;
  // From values at the points, the sums of both halves, and after them the differences: the second
  // half's value minus the first one's.
  virtual void join_halves(ring::Polynomial values, ring::MutablePolynomial joined) const = 0;
  // sum += all digits times their keys / 2^32, point by point.
  virtual void add_digit_products(const DigitProducts& products) const = 0;
  // ring::decompose of every coefficient; digits as numbers modulo the NTT's modulus.
  virtual void decompose(ring::Polynomial polynomial, DigitPolynomials& digits) const = 0;

 protected:
  using Ntt::Ntt;
};

}  // namespace blindfuse
