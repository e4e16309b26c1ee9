// What cuda/packing/device_ring.h makes, in the host's memory: for tests of single kernels.
#pragma once

#include <algorithm>

#include "cuda/packing/kernels/ring_tasks.h"
#include "src/arithmetic/ring/butterflies.h"
#include "tests/cuda/kernel_support.h"

namespace blindfuse::emulator {

class HostRing {
 public:
  HostRing() {
    std::ranges::copy(butterflies_.forward, forward_.begin());
    std::ranges::copy(butterflies_.inverse, inverse_.begin());
    const auto& places = ring::Butterflies::places();
    for (size_t k = 0; k < places.size(); ++k) points_[places[k]] = static_cast<uint16_t>(k);
  }

  RingView view() const {
    return {forward_.data(), inverse_.data(), points_.data(), butterflies_.scale, field_};
  }

 private:
  const ring::PrimeField field_{ring::kPackingModulus};
  const ring::Butterflies butterflies_{field_};
  const Memory<ring::Factor> forward_{ring::kDimension}, inverse_{ring::kDimension};
  const Memory<uint16_t> points_{ring::kDimension};
};

}  // namespace blindfuse::emulator
