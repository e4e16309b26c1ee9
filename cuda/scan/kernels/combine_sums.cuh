// Sums of limbs, as a library's matrix product leaves them, to products.
//
// Roofline: 16 bytes in and 8 bytes to and fro a product; negligible compared with the product
// itself.
#pragma once

#include <cstdint>

#include "cuda/scan/kernels/limbs.cuh"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

// Grid: (columns, queries).
__global__ void combine_sums(CombineArgs args) {
  const uint32_t column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= args.column_count) return;
  int32_t sums[4];
#pragma unroll
  for (uint32_t l = 0; l < 4; ++l) {
    sums[l] = args.sums[limb_row(blockIdx.y, l) * args.sum_pitch + column];
  }
  args.products[blockIdx.y * args.product_pitch + column] +=
      combine_limbs(sums[0], sums[1], sums[2], sums[3]);
}

}  // namespace
}  // namespace blindfuse
