// Cuts query words into limbs (cuda/kernels/tasks.h), and puts sums of limbs together.
//
// Roofline: reads query_bits / 8 and writes 4 bytes a word; at the memory's rate,
// batch * 8 / C of a scan's time.
#pragma once

#include <cstdint>

#include "cuda/kernels/intrinsics.cuh"
#include "cuda/kernels/tasks.h"
#include "cuda/kernels/transpose_bytes.cuh"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

// Rows that one thread cuts: 16 bytes of each limb row.
constexpr uint32_t kRowsPerThread = 16;

// Four words' limbs l are the bytes of the l-th result.
__device__ __forceinline__ void cut_four(const uint32_t (&words)[4], uint32_t (&limbs)[4]) {
  uint32_t w[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) w[i] = (words[i] + 0x80808080u) ^ 0x80808080u;
  transpose_bytes(w, limbs);
}

// Four sums of limbs make a product.
__device__ __forceinline__ uint32_t combine_limbs(int32_t s0, int32_t s1, int32_t s2, int32_t s3) {
  return static_cast<uint32_t>(s0) + (static_cast<uint32_t>(s1) << 8) +
         (static_cast<uint32_t>(s2) << 16) + (static_cast<uint32_t>(s3) << 24);
}

// word(i) for i = 0 .. 15 into the four limb rows of query q, from row `row` on.
template <typename Word>
__device__ __forceinline__ void cut_sixteen(const Limbs& limbs, uint32_t q, uint64_t row,
                                            const Word& word) {
  uint32_t cut[4][4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const uint32_t words[4] = {word(4 * i), word(4 * i + 1), word(4 * i + 2), word(4 * i + 3)};
    cut_four(words, cut[i]);
  }
  if (limbs.order == LimbOrder::kWgmma) {
    const uint64_t block = row / 64 * 64 + row % 64 / 4;
#pragma unroll
    for (int l = 0; l < 4; ++l) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        *reinterpret_cast<uint32_t*>(limbs.bytes +
                                     limb_row(q, static_cast<uint32_t>(l)) * limbs.pitch + block +
                                     static_cast<uint32_t>(16 * j)) = cut[j][l];
      }
    }
    return;
  }
#pragma unroll
  for (int l = 0; l < 4; ++l) {
    *reinterpret_cast<uint4*>(limbs.bytes + limb_row(q, static_cast<uint32_t>(l)) * limbs.pitch +
                              row) = make_uint4(cut[0][l], cut[1][l], cut[2][l], cut[3][l]);
  }
}

// Grid: (limbs.pitch / 16 threads, queries).
__global__ void cut_plain_words(PlainWords from, Limbs limbs) {
  const uint64_t row = (uint64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kRowsPerThread;
  if (row >= limbs.pitch) return;
  const uint32_t* words = from.words + blockIdx.y * from.stride;
  cut_sixteen(limbs, blockIdx.y, row, [&](int i) {
    const uint64_t r = row + static_cast<uint32_t>(i) - from.lead;  // wraps in front of row 0
    return r < from.row_count ? words[r / 64 * from.panel_stride + r % 64] : 0u;
  });
}

// Grid: (limbs.pitch / 16 threads, queries).
__global__ void cut_packed_words(PackedWords from, Limbs limbs) {
  const uint64_t row = (uint64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kRowsPerThread;
  if (row >= limbs.pitch) return;
  const uint32_t* packed = from.words + blockIdx.y * from.stride;
  cut_sixteen(limbs, blockIdx.y, row, [&](int i) {
    const uint64_t r = row + static_cast<uint32_t>(i);
    if (r >= from.row_count) return 0u;
    const uint64_t bit = r * from.bits;
    const uint32_t low = packed[bit / 32], high = packed[bit / 32 + 1];
    // What lies above the number is shifted out.
    return __funnelshift_r(low, high, static_cast<uint32_t>(bit % 32)) << (32 - from.bits);
  });
}

}  // namespace
}  // namespace blindfuse
