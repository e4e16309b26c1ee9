// Additions to products in the pattern of the epilogue of the scans on tensor cores
// (cuda/scan/kernels/word_products.cuh, add_column): a warp adds to eight neighbouring columns of
// four queries at a time.
#pragma once

#include <cstdint>

#include "bench/probes/reduction_walk.h"
#include "cuda/device/intrinsics.cuh"

namespace blindfuse::probes {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

__global__ void __launch_bounds__(kReduceThreads)
    reduce_products(ReductionWalk walk, uint32_t* products) {
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t warp = threadIdx.x / 32;
  for (uint32_t pass = 0; pass < walk.passes; ++pass) {
    const uint32_t first = reduced_tile(walk, blockIdx.x, pass) * kReduceColumns + warp * 16;
    for (uint32_t four = 0; four < walk.query_count; four += 4) {
      const uint32_t query = four + lane % 4;
#pragma unroll
      for (uint32_t k = 0; k < 2; ++k) {
        const uint32_t column = first + k * 8 + lane / 4;
        atomicAdd(products + uint64_t{query} * walk.column_count + column,
                  reduced_value(query, column));
      }
    }
  }
}

}  // namespace
}  // namespace blindfuse::probes
