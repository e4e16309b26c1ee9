// The products of a batch, weighted and added up, less what their queries add up to
// (cuda/scan/check_vector.h).
//
// Roofline: 8 bytes a product in, half of them weights that all queries share; nothing next to a
// scan of R C bytes. A block a query, 8 loads of a thread in flight: 8,192 products a turn.
#pragma once

#include <cstdint>

#include "cuda/device/intrinsics.cuh"
#include "cuda/scan/kernels/scan_args.h"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

constexpr uint32_t kWeighProductsThreads = 1024;
constexpr uint32_t kWeighProductsSharedBytes = kWeighProductsThreads / 32 * sizeof(uint32_t);

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
