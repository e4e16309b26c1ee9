// The automorphisms X -> X^g of polynomials of ring_dimension.h, for g = 5^i or g = -5^i modulo
// 4096. There are no others.
#pragma once

#include <algorithm>
#include <cstddef>

#include "src/arithmetic/ring/ring_dimension.h"

namespace blindfuse::ring {

struct Automorphism {
  size_t power = 0;       // i, 0 .. kOrbit - 1
  bool negative = false;  // g = -5^i
};

// Applies the automorphism to values in the evaluation domain of Ntt. The value at w^h becomes that
// at w^(g h), which lies `power` points further along its half, or along the other one. `out` and
// `values` do not overlap.
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

}  // namespace blindfuse::ring
