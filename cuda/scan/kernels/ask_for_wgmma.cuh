// Asks the device whether it runs code with Hopper's own instructions.
#pragma once

#include <cstdint>

#include "cuda/scan/kernels/wgmma.cuh"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

// Answers 1 if scan_wgmma can run. One thread answers.
__global__ void ask_for_wgmma(uint32_t* answer) {
  if (threadIdx.x == 0) *answer = runs_wgmma_code() ? 1 : 0;
}

}  // namespace
}  // namespace blindfuse
