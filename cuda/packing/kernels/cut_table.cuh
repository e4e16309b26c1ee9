// Cuts packing tables into bytes, in the order in which the tensor cores take them
// (cuda/packing/kernels/packing_args.h). Once for every table, when it arrives.
//
// Roofline: 25.1 MB of a table in and as many out; 10 us a table on an H200 (4.8 TB/s), where the
// way from the host takes 0.4 ms (63 GB/s). Unmeasured.
#pragma once

#include <cstdint>

#include "cuda/device/transpose_bytes.cuh"
#include "cuda/packing/kernels/packing_args.h"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

// A thread cuts eight powers of one point: what one lane has of a step. Sixteen points for each
// four powers, so that a group's line of 64 bytes is read at once.
constexpr uint32_t kStepThreads = kPointsTogether * 4;
constexpr uint32_t kCutTableThreads = 256;
constexpr uint32_t kStepsInBlock = kCutTableThreads / kStepThreads;

// Grid: (kSumSteps / kStepsInBlock, groups).
__global__ void __launch_bounds__(kCutTableThreads) cut_table(CutTableArgs cut) {
  constexpr uint32_t kGroup = kPointsTogether;
  const uint32_t of_group = threadIdx.x % kGroup;
  const uint32_t t = threadIdx.x / kGroup % 4;
  const uint32_t step = blockIdx.x * kStepsInBlock + threadIdx.x / kStepThreads;
  const uint32_t digit = step / kSegmentSteps;
  const uint32_t point = (cut.first_group + blockIdx.y) * kGroup + of_group;

  uint32_t limbs[2][4];  // of the lower powers, and of the upper ones
#pragma unroll
  for (uint32_t half = 0; half < 2; ++half) {
    uint32_t words[4];
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t power = step % kSegmentSteps * kStepPowers + half * 16 + t * 4 + i;
      words[i] =
          power < kKeySwitches
              ? cut.words[table_place(blockIdx.y, key_switch_number(power), digit) + of_group]
              : 0;
    }
    transpose_bytes(words, limbs[half]);
  }
  uint8_t* to = cut.tables + tile_place(point, cut.pack / kPacksInTile, cut.pack_count) +
                step * kStepBytes + (cut.pack % kPacksInTile * 4 + t) * 16;
#pragma unroll
  for (uint32_t pair = 0; pair < 2; ++pair) {
    *reinterpret_cast<uint4*>(to + pair * kHalfStepBytes) = make_uint4(
        limbs[0][2 * pair], limbs[1][2 * pair], limbs[0][2 * pair + 1], limbs[1][2 * pair + 1]);
  }
}

}  // namespace
}  // namespace blindfuse
