// The matrix times weights of its columns: the vector that every product is checked with
// (cuda/scan/check_vector.h).
//
// Roofline: reads the matrix once. Two instructions a byte, for its sign and its product: an H200
// (132 multiprocessors, 1.75 GHz, 4.8 TB/s: 21 matrix bytes a clock each) issues 64 multiplications
// a clock and multiprocessor. Once for an epoch that is loaded.
#pragma once

#include <cstdint>

#include "cuda/device/intrinsics.cuh"
#include "cuda/scan/kernels/limbs.cuh"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

constexpr uint32_t kWeighColumnsThreads = 128;
// The columns of a block. A thread adds to the vector once for all of them.
constexpr uint32_t kWeighedColumns = 256;

// Grid: (columns / kWeighedColumns, column_pitch / 16 threads): of the second there may be 65,535.
__global__ void __launch_bounds__(kWeighColumnsThreads) weigh_columns(WeighColumnsArgs args) {
  constexpr uint32_t kColumnsAhead = 8;
  const uint64_t row = (uint64_t{blockIdx.y} * blockDim.x + threadIdx.x) * kRowsPerThread;
  if (row >= args.column_pitch) return;
  const uint32_t first = blockIdx.x * kWeighedColumns;
  const uint32_t last = min(first + kWeighedColumns, args.column_count);
  const int8_t* const bytes = args.columns + row;
  uint32_t sums[kRowsPerThread] = {};
  for (uint32_t c = first; c < last; c += kColumnsAhead) {
    uint4 v[kColumnsAhead];
    uint32_t weights[kColumnsAhead];
#pragma unroll
    for (uint32_t k = 0; k < kColumnsAhead; ++k) {
      // After the last column the last one is read again, with no weight.
      const uint32_t column = min(c + k, last - 1);
      v[k] = load_once_16(bytes + column * args.column_pitch);
      weights[k] = c + k < last ? args.weights[column] : 0;
    }
#pragma unroll
    for (uint32_t k = 0; k < kColumnsAhead; ++k) {
      const uint32_t words[4] = {v[k].x, v[k].y, v[k].z, v[k].w};
#pragma unroll
      for (uint32_t i = 0; i < kRowsPerThread; ++i) {
        const auto byte = static_cast<int8_t>(words[i / 4] >> 8 * (i % 4));
        sums[i] += weights[k] * static_cast<uint32_t>(int32_t{byte});
      }
    }
  }
#pragma unroll
  for (uint32_t i = 0; i < kRowsPerThread; ++i) atomicAdd(args.vector + row + i, sums[i]);
}

}  // namespace
}  // namespace blindfuse
