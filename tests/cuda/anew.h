// For tests that lose the emulated device: what its owners have left on it does not stay.
#pragma once

#include "tests/cuda/fake_runtime.h"

namespace blindfuse::fake_cuda {

// Is declared before all that uses the device.
struct Anew {
  Anew() = default;
  Anew(const Anew&) = delete;
  Anew& operator=(const Anew&) = delete;
  ~Anew() { begin_anew(); }
};

}  // namespace blindfuse::fake_cuda
