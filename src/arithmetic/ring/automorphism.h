// The automorphisms X -> X^g of polynomials of ring_dimension.h, for the powers g = 5^i modulo 4096.
// Their negatives, which are the others, are not used.
#pragma once

#include <algorithm>
#include <cstddef>

#include "src/arithmetic/ring/ring_dimension.h"

namespace blindfuse::ring {

struct Automorphism {
  size_t power = 0;  // i, 0 .. kOrbit - 1
};

// Applies the automorphism to values in the evaluation domain of Ntt. The value at w^h becomes that
// at w^(g h), which lies `power` points further along its half. `out` and `values` do not overlap.
inline void apply(const Automorphism& automorphism, Polynomial values, MutablePolynomial out) {
  const size_t turn = automorphism.power;
  for (size_t half = 0; half < 2; ++half) {
    const auto from = values.subspan(half * kOrbit, kOrbit);
    const auto to = out.subspan(half * kOrbit, kOrbit);
    std::rotate_copy(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(turn), from.end(),
                     to.begin());
  }
}

}  // namespace blindfuse::ring
