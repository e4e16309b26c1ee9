// The tables of transforms modulo the packing modulus, in the device's memory.
#pragma once

#include <cstdint>

#include "cuda/device/memory.h"
#include "cuda/packing/kernels/ring_tasks.h"

namespace blindfuse {

class DeviceRing {
 public:
  // On the device that is current. Returns when all has arrived. Throws EngineTrouble.
  DeviceRing();

  // For kernels on that device, as long as this lives.
  RingView view() const;

 private:
  DeviceMemory<ring::Factor> forward_, inverse_;
  DeviceMemory<uint16_t> points_;
  ring::Factor scale_{};
};

}  // namespace blindfuse
