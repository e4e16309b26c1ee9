// Cuts packing tables into bytes, in the order in which a scan's kernels take them
// (cuda/packing/kernels/packing_args.h). Once for every table, when it arrives.
//
// Roofline: 25.1 MB of a table in and as many out; 10 us a table on an H200 (4.8 TB/s), where the
// way from the host takes 0.4 ms (63 GB/s). The 16 points of a line are kept at places that differ,
// so that a warp's load touches 32 lines; the next loads are of the same ones and find them in the
// first-level cache. Unmeasured.
#pragma once

#include <cstdint>

#include "cuda/packing/kernels/packing_args.h"
#include "cuda/scan/kernels/limbs.cuh"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

// A thread cuts sixteen rows of one point; sixteen points are neighbours, and two threads of a warp
// write 32 bytes of each of a point's columns.
constexpr uint32_t kCutTableThreads = 256;
constexpr uint32_t kGroupPoints = kPointsTogether;
constexpr uint32_t kCutTableRows = kCutTableThreads / kGroupPoints * kRowsPerThread;
static_assert(kHalfPoints % kCutTableRows == 0, "a block has rows of one digit");

// Grid: (kSumRows / kCutTableRows, groups).
__global__ void __launch_bounds__(kCutTableThreads) cut_table(CutTableArgs cut) {
  const uint32_t of_group = threadIdx.x % kGroupPoints;
  const uint32_t row = blockIdx.x * kCutTableRows + threadIdx.x / kGroupPoints * kRowsPerThread;
  const uint32_t digit = row / kHalfPoints;
  const uint32_t point = (cut.first_group + blockIdx.y) * kGroupPoints + of_group;

  uint32_t limbs[4][kWordLimbs];
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    uint32_t words[4];
#pragma unroll
    for (uint32_t k = 0; k < 4; ++k) {
      // The power that meets this place at this point. The difference may wrap.
      const uint32_t power = (row + 4 * i + k - point) % kHalfPoints;
      words[k] =
          power < kKeySwitches
              ? balanced_word(
                    cut.words[table_place(blockIdx.y, key_switch_number(power), digit) + of_group])
              : 0;
    }
    cut_four(words, limbs[i]);
  }
  int8_t* const to = cut.columns + point_column(point, cut.pack, cut.pack_count) * kSumRows + row;
#pragma unroll
  for (uint32_t l = 0; l < kWordLimbs; ++l) {
    *reinterpret_cast<uint4*>(to + l * kSumRows) =
        make_uint4(limbs[0][l], limbs[1][l], limbs[2][l], limbs[3][l]);
  }
}

}  // namespace
}  // namespace blindfuse
