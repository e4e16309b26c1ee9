// X -> X^g on polynomials of ring_dimension.h, for g = 5^i or g = -5^i modulo 4096: all there are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "src/ring/prime_field.h"
#include "src/ring/ring_dimension.h"

namespace blindfuse::ring {

struct Automorphism {
  size_t power = 0;       // i, 0 .. kOrbit - 1
  bool negative = false;  // g = -5^i

  // g, 1 .. 4095.
  constexpr uint32_t exponent() const {
    uint32_t g = 1;
    for (size_t i = 0; i < power; ++i) g = g * 5 % kOrder;
    return negative ? kOrder - g : g;
  }
};

// Of values at the points of RingTransform: the value at w^h becomes that at w^(g h), which lies
// `power` places further along its half, or along the other one.
inline void apply(const Automorphism& automorphism, Polynomial values, MutablePolynomial out) {
  const size_t turn = automorphism.power;
  for (size_t half = 0; half < 2; ++half) {
    const auto from =
        values.subspan((half ^ static_cast<size_t>(automorphism.negative)) * kOrbit, kOrbit);
    const auto to = out.subspan(half * kOrbit, kOrbit);
    std::rotate_copy(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(turn), from.end(),
                     to.begin());
  }
}

// Of coefficients, modulo a prime.
inline void apply_to_coefficients(const Automorphism& automorphism, const PrimeField& field,
                                  Polynomial polynomial, MutablePolynomial out) {
  const uint32_t g = automorphism.exponent();
  for (uint32_t i = 0; i < kDimension; ++i) {
    const uint32_t place = i * g % kOrder;
    out[place % kDimension] = place < kDimension ? polynomial[i] : field.subtract(0, polynomial[i]);
  }
}

}  // namespace blindfuse::ring
