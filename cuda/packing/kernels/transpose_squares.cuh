// Exchanges rows and columns of squares (cuda/packing/kernels/table_args.h).
#pragma once

#include <cstdint>

#include "cuda/packing/kernels/squares.cuh"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

constexpr uint32_t kTransposeThreads = 256;
constexpr uint32_t kTransposeSharedBytes = 2 * 32 * 32 * sizeof(uint32_t);

// Exchanges rows and columns of each square, in place. A block has two tiles of 32 x 32 words,
// which change places. With n < 32 for the first 32, the first 32 n rows become columns, and these
// rows, and what is not theirs stays. Grid: (32, 32, two for each pack); kTransposeSharedBytes.
__global__ void __launch_bounds__(kTransposeThreads) transpose_squares(uint32_t* squares) {
  if (blockIdx.x > blockIdx.y) return;  // the block of the other tile does it
  uint32_t* const tiles = shared_polynomials();
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint32_t* const square = square_row(squares, blockIdx.z / 2, 0) + blockIdx.z % 2 * kOrbitWords;
  uint32_t* const upper = square + blockIdx.x * 32 * kRingWords + blockIdx.y * 32;
  uint32_t* const lower = square + blockIdx.y * 32 * kRingWords + blockIdx.x * 32;
#pragma unroll
  for (uint32_t row = warp; row < 32; row += kTransposeThreads / 32) {
    tiles[swizzled_word(row, lane)] = upper[row * kRingWords + lane];
    tiles[1024 + swizzled_word(row, lane)] = lower[row * kRingWords + lane];
  }
  __syncthreads();
#pragma unroll
  for (uint32_t row = warp; row < 32; row += kTransposeThreads / 32) {
    upper[row * kRingWords + lane] = tiles[1024 + swizzled_word(lane, row)];
    lower[row * kRingWords + lane] = tiles[swizzled_word(lane, row)];
  }
}

}  // namespace
}  // namespace blindfuse
