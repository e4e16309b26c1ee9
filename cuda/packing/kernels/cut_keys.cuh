// Cuts packing keys into bytes, in planes of which any window can be read
// (cuda/packing/kernels/packing_args.h).
//
// Roofline: 24,576 bytes of a query in, 110,592 out, which stay in the second-level cache; this is
// negligible compared with 25.2 MB a pack.
#pragma once

#include <cstdint>

#include "cuda/device/transpose_bytes.cuh"
#include "cuda/packing/kernels/packing_args.h"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

// A thread makes four bytes of each limb and each copy.
constexpr uint32_t kCutKeysThreads = kPlaneBytes / 4;
static_assert(kCutKeysThreads % 32 == 0, "whole warps");

// Grid: (digits and halves, queries).
__global__ void __launch_bounds__(kCutKeysThreads) cut_keys(CutKeysArgs cut) {
  const uint32_t digit = blockIdx.x / 2, half = blockIdx.x % 2;
  const uint32_t first = threadIdx.x * 4;
  const uint32_t* keys = cut.keys + blockIdx.y * cut.key_pitch + blockIdx.x * kSegmentPowers;
  uint8_t* planes = cut.planes + uint64_t{blockIdx.y} * kQueryPlaneBytes;
  uint32_t words[kPlaneCopies + 3];
#pragma unroll
  for (uint32_t i = 0; i < kPlaneCopies + 3; ++i) words[i] = keys[(first + i) % kSegmentPowers];
#pragma unroll
  for (uint32_t copy = 0; copy < kPlaneCopies; ++copy) {
    const uint32_t four[4] = {words[copy], words[copy + 1], words[copy + 2], words[copy + 3]};
    uint32_t limbs[4];
    transpose_bytes(four, limbs);
#pragma unroll
    for (uint32_t limb = 0; limb < kWordLimbs; ++limb) {
      *reinterpret_cast<uint32_t*>(planes + plane_place(digit, half, limb, copy) + first) =
          limbs[limb];
    }
  }
}

}  // namespace
}  // namespace blindfuse
