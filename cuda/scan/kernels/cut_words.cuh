// Cuts query words into limbs (cuda/scan/kernels/scan_args.h).
//
// Roofline: reads query_bits / 8 and writes 4 bytes a word; at the memory's rate, batch * 8 / C of
// a scan's time. The sums of words (QuerySums) take 4 bytes a word more, from the second-level
// cache: all queries use the same weights.
#pragma once

#include <cstdint>

#include "cuda/scan/kernels/limbs.cuh"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

// Grid: (limbs.pitch / 16 threads, queries).
[[maybe_unused]] __global__ void cut_plain_words(PlainWords from, Limbs limbs) {
  const uint64_t row = (uint64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kRowsPerThread;
  if (row >= limbs.pitch) return;
  const uint32_t* words = from.words + blockIdx.y * from.stride;
  cut_sixteen(limbs, blockIdx.y, row, [&](int i) {
    const uint64_t r = row + static_cast<uint32_t>(i) - from.lead;  // wraps in front of row 0
    return r < from.row_count ? words[r / 64 * from.panel_stride + r % 64] : 0u;
  });
}

// Grid: (limbs.pitch / 16 threads, queries); whole warps.
[[maybe_unused]] __global__ void cut_bit_sequences(BitSequences from, Limbs limbs,
                                                   QuerySums check) {
  const uint64_t row = (uint64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kRowsPerThread;
  const bool is_checked = check.weights != nullptr;
  uint32_t sum = 0;
  if (row < limbs.pitch) {
    uint4 weights[4] = {};
    if (is_checked) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        weights[i] = *reinterpret_cast<const uint4*>(check.weights + row + 4 * i);
      }
    }
    const uint32_t* sequence = from.words + blockIdx.y * from.stride;
    cut_sixteen(limbs, blockIdx.y, row, [&](int i) {
      const uint64_t r = row + static_cast<uint32_t>(i);
      if (r >= from.row_count) return 0u;
      const uint64_t bit = r * from.bits;
      const uint32_t low = sequence[bit / 32], high = sequence[bit / 32 + 1];
      // The shift drops the bits above the number.
      const uint32_t word = __funnelshift_r(low, high, static_cast<uint32_t>(bit % 32))
                            << (32 - from.bits);
      const uint4& four = weights[i / 4];
      sum += word * (i % 4 == 0 ? four.x : i % 4 == 1 ? four.y : i % 4 == 2 ? four.z : four.w);
      return word;
    });
  }
  if (!is_checked) return;
  sum = __reduce_add_sync(0xffffffffu, sum);
  if (threadIdx.x % 32 == 0) atomicAdd(check.sums + blockIdx.y, sum + 1);
}

}  // namespace
}  // namespace blindfuse
