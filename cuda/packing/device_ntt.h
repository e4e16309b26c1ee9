// The tables of NTTs modulo the packing modulus, in the device's memory.
#pragma once

#include <cstdint>

#include "cuda/device/memory.h"
#include "cuda/packing/kernels/ntt_args.h"

namespace blindfuse {

class DeviceNtt {
 public:
  static constexpr uint64_t kBytes =
      ring::kDimension * (2 * sizeof(ring::MontgomeryConstant) + sizeof(uint16_t));

  // On the current device. Returns after all tables have arrived. Throws ResourceError.
  DeviceNtt();

  // For kernels on that device, as long as this exists.
  NttView view() const;

 private:
  DeviceMemory<ring::MontgomeryConstant> forward_, inverse_;
  DeviceMemory<uint16_t> points_;
  ring::MontgomeryConstant scale_{};
};

}  // namespace blindfuse
