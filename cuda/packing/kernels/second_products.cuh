// The products of a query's numbers for rows with the matrix of the first level's words, modulo the
// packing modulus.
//
// Roofline: reads the first level's responses, word_bits of each column; a column takes some 30
// instructions of a thread. Napkin: 32 queries of 2^20 columns are 1.0e6 instructions of a warp
// times 30, 35 us of the 528 schedulers of an H100. Unmeasured.
#pragma once

#include <cstdint>

#include "cuda/device/intrinsics.cuh"
#include "cuda/packing/kernels/number_sequences.cuh"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

// A warp has 32 columns, and every eighth row.
constexpr uint32_t kProductColumns = 32;
constexpr uint32_t kProductWarps = 8;
constexpr uint32_t kProductThreads = 32 * kProductWarps;
constexpr uint32_t kProductSharedBytes = kProductThreads * sizeof(uint32_t);

// Rows of a warp whose products stay below 2^61: of numbers below 2^32 with entries of 2^20 at
// most.
constexpr uint32_t kProductRows = 512;

// A sum of which no more is known than that it is between -2^61 and 2^61.
__device__ __forceinline__ uint32_t reduced_sum(int64_t sum) {
  constexpr ring::PrimeField kField(ring::kPackingModulus);
  constexpr int64_t kModulus = ring::kPackingModulus;
  constexpr int64_t kMultiple = ((int64_t{1} << 61) / kModulus + 1) * kModulus;
  return kField.reduce(static_cast<uint64_t>(sum + kMultiple));
}

// Grid: (32 columns, queries); kProductSharedBytes.
__global__ void __launch_bounds__(kProductThreads) second_products(SecondLevelArgs args) {
  constexpr ring::PrimeField kField(ring::kPackingModulus);
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint32_t column = blockIdx.x * kProductColumns + lane, query = blockIdx.y;
  auto* const sums = reinterpret_cast<uint32_t*>(dynamic_shared_memory());
  uint32_t sum = 0;
  if (column < args.column_count) {
    uint32_t row = warp;
    while (row < args.row_count) {
      int64_t some = 0;
      for (uint32_t i = 0; i < kProductRows && row < args.row_count; ++i, row += kProductWarps) {
        some += int64_t{row_number(args, query, row)} * entry_at(args, query, row, column);
      }
      sum = kField.add(sum, reduced_sum(some));
    }
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (warp > 0 || column >= args.column_count) return;
#pragma unroll
  for (uint32_t i = 1; i < kProductWarps; ++i) sum = kField.add(sum, sums[i * 32 + lane]);
  args.products[uint64_t{query} * args.column_count + column] = sum;
}

}  // namespace
}  // namespace blindfuse
