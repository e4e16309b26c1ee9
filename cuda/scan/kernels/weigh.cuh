// Kernels that make the check vector and compare every product with it (cuda/scan/check_vector.h).
#pragma once

#include <cstdint>

#include "cuda/device/intrinsics.cuh"
#include "cuda/scan/kernels/limbs.cuh"
#include "cuda/scan/kernels/scan_args.h"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

constexpr uint32_t kWeighColumnsThreads = 128;
// The columns of a block. A thread adds to the vector once for all of them.
constexpr uint32_t kWeighedColumns = 256;

// The matrix times weights of its columns: the check vector.
//
// Roofline: reads the matrix once. Two instructions a byte, for its sign and its product: an H200
// (132 multiprocessors, 1.75 GHz, 4.8 TB/s: 21 matrix bytes a clock each) issues 64 multiplications
// a clock and multiprocessor. Once for an epoch that is loaded.
//
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

constexpr uint32_t kWeighProductsThreads = 1024;
constexpr uint32_t kWeighProductsSharedBytes = kWeighProductsThreads / 32 * sizeof(uint32_t);

// The products of a batch, weighted and added up, less what their queries add up to.
//
// Roofline: 8 bytes a product in, half of them weights that all queries share; nothing next to a
// scan of R C bytes. A block a query, 8 loads of a thread in flight: 8,192 products a turn.
//
// Grid: (queries).
__global__ void __launch_bounds__(kWeighProductsThreads) weigh_products(WeighProductsArgs args) {
  constexpr uint32_t kAtOnce = 8;
  const uint32_t query = blockIdx.x;
  const uint32_t* const products = args.products + query * args.product_pitch;
  uint32_t sum = 0;
  for (uint32_t first = threadIdx.x; first < args.column_count;
       first += kAtOnce * kWeighProductsThreads) {
    uint32_t product[kAtOnce], weight[kAtOnce];
#pragma unroll
    for (uint32_t k = 0; k < kAtOnce; ++k) {
      const uint32_t c = first + k * kWeighProductsThreads;
      product[k] = c < args.column_count ? products[c] : 0;
      weight[k] = c < args.column_count ? args.weights[c] : 0;
    }
#pragma unroll
    for (uint32_t k = 0; k < kAtOnce; ++k) sum += product[k] * weight[k];
  }
  auto* const of_warps = reinterpret_cast<uint32_t*>(dynamic_shared_memory());
  sum = __reduce_add_sync(0xffffffffu, sum);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  uint32_t total = 0;
  for (uint32_t w = 0; w < kWeighProductsThreads / 32; ++w) total += of_warps[w];
  args.differences[query] = total - (args.sums[query] - args.cut_warps);
}

}  // namespace
}  // namespace blindfuse
