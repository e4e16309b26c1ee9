// X -> X^g on polynomials of ring_dimension.h, for g = 5^i or g = -5^i modulo 4096: all there are.
#pragma once

#include <algorithm>
#include <cstddef>

#include "src/arithmetic/ring/ring_dimension.h"

namespace blindfuse::ring {

struct Automorphism {
  size_t power = 0;       // i, 0 .. kOrbit - 1
  bool negative = false;  // g = -5^i
};

// Of values in the evaluation domain of Ntt: the value at w^h becomes that at w^(g h), which lies
// `power` points further along its half, or along the other one. `out` is other memory than
// `values`.
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
