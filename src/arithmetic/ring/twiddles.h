// The tables that every implementation of Ntt uses: the twiddle factors, and the order in which the
// butterflies leave the values (Longa and Naehrig, ePrint 2016/504, algorithms 1 and 2).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "src/arithmetic/ring/prime_field.h"
#include "src/arithmetic/ring/ring_dimension.h"

namespace blindfuse::ring {

struct Twiddles {
  // Powers of the root of unity in bit-reversed order: number `blocks + b` is for block b of the
  // level with `blocks` blocks. 2048 each; the first is not used.
  std::vector<MontgomeryConstant> forward, inverse;
  MontgomeryConstant scale;  // 1 / 2048

  explicit Twiddles(const PrimeField& field);

  // The butterflies leave the values in bit-reversed order. Entry k is the place there of the value
  // at point k, in the order of the orbit of 5 (ntt.h).
  static const std::array<uint16_t, kDimension>& orbit_order();
};

// The primitive 4096-th root of unity w: the power (modulus - 1) / 4096 of the least number for
// which that power has order 4096.
uint32_t root_of_unity(const PrimeField& field);

}  // namespace blindfuse::ring
