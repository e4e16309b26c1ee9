// Cuts packing keys into limbs, as the product takes them (cuda/packing/kernels/packing_args.h).
//
// Roofline: 24,576 bytes of a query in and as many out, which stay in the second-level cache; this
// is negligible compared with 25.2 MB a pack.
#pragma once

#include <cstdint>

#include "cuda/packing/kernels/packing_args.h"
#include "cuda/scan/kernels/limbs.cuh"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

constexpr uint32_t kCutKeysThreads = kSumRows / kRowsPerThread;
static_assert(kCutKeysThreads % 32 == 0, "whole warps");

// Grid: (halves, queries).
__global__ void __launch_bounds__(kCutKeysThreads) cut_keys(CutKeysArgs cut) {
  const uint32_t row = threadIdx.x * kRowsPerThread;
  // Of each digit, the key has both halves.
  const uint32_t* keys = cut.keys + blockIdx.y * cut.key_pitch +
                         (row / kHalfPoints * kRingHalves + blockIdx.x) * kHalfPoints +
                         row % kHalfPoints;
  Limbs limbs = cut.limbs;
  limbs.bytes += blockIdx.x * cut.half_bytes;
  cut_sixteen(limbs, blockIdx.y, row, [&](int i) { return balanced_word(keys[i]); });
}

}  // namespace
}  // namespace blindfuse
