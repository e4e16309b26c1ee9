// What cuda/packing/device_ntt.h makes, in the host's memory: for tests of single kernels.
#pragma once

#include <algorithm>

#include "cuda/packing/kernels/ntt_args.h"
#include "src/arithmetic/ring/ntt.h"
#include "tests/cuda/device_memory.h"

namespace blindfuse::emulator {

class HostRing {
 public:
  HostRing() {
    std::ranges::copy(twiddles_.forward, forward_.begin());
    std::ranges::copy(twiddles_.inverse, inverse_.begin());
    const auto& orbit_order = ring::Twiddles::orbit_order();
    for (size_t k = 0; k < orbit_order.size(); ++k)
      points_[orbit_order[k]] = static_cast<uint16_t>(k);
  }

  NttView view() const {
    return {forward_.data(), inverse_.data(), points_.data(), twiddles_.scale, field_};
  }

 private:
  const ring::PrimeField field_{ring::kPackingModulus};
  const ring::Twiddles twiddles_{field_};
  const Memory<ring::MontgomeryConstant> forward_{ring::kDimension}, inverse_{ring::kDimension};
  const Memory<uint16_t> points_{ring::kDimension};
};

}  // namespace blindfuse::emulator
