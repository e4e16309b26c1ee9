// What every implementation of RingTransform computes with: the factors of the butterflies, and
// where these leave the values (Longa and Naehrig, ePrint 2016/504, algorithms 1 and 2).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "src/arithmetic/ring/prime_field.h"
#include "src/arithmetic/ring/ring_dimension.h"

namespace blindfuse::ring {

struct Butterflies {
  // Factor `blocks + b` is for block b of the level with so many blocks. 2048 each; the first is
  // not used.
  std::vector<Factor> forward, inverse;
  Factor scale;  // 1 / 2048

  explicit Butterflies(const PrimeField& field);

  // Where the value at point k lies after the last level.
  static const std::array<uint16_t, kDimension>& places();
};

// w: the power (modulus - 1) / 4096 of the least number for which that has order 4096.
uint32_t root_of_one(const PrimeField& field);

}  // namespace blindfuse::ring
