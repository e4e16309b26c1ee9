// The product for one to three queries: u32 x i8 as four dp4a of four bytes each.
//
// Every byte of the matrix is read once, and that is the limit: on an H200, 4.8 TB/s over 132
// multiprocessors at 1.75 GHz are 21 bytes a clock and multiprocessor. For 512 bytes of a column a
// warp issues, a query, 16 dp4a, 3 shift-adds and one reduction. dp4a goes through at 64 lanes a
// clock and multiprocessor, two a clock for a warp: 8 clocks for 512 bytes and query, with the rest
// some 10: 17 bytes a clock with three queries, less than memory delivers; with four the tensor
// cores are ahead.
//
// A thread keeps the limbs of its 16 rows in registers and goes from column to column.
#pragma once

#include <cstdint>

#include "cuda/scan/kernels/limbs.cuh"
#include "cuda/scan/kernels/word_products.cuh"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

constexpr uint32_t kDp4aThreads = 256;
constexpr uint32_t kDp4aBlockRows = kDp4aThreads * kRowsPerThread;
// A warp adds up this many columns before it writes: one a lane.
constexpr uint32_t kDp4aColumnGrain = 32;

// The queries first_query .. first_query + kQueries - 1 of args. Grid: (columns /
// columns_per_block, rows / 4096); columns_per_block is a multiple of 32. Fewer threads than
// kDp4aThreads will do where there are fewer rows.
//
// Two blocks a multiprocessor leave a thread 128 registers. Without this bound the compiler takes
// fewer, and a thread waits for each column before it asks for the next.
template <int kQueries, typename Epilogue = WordProducts>
__global__ void __launch_bounds__(kDp4aThreads, 2)
    scan_dp4a(typename Epilogue::Args args, uint32_t first_query, uint32_t columns_per_block) {
  constexpr uint32_t kColumnsAhead = 8;  // 16 bytes each on their way to every thread
  constexpr uint32_t kTogether = Epilogue::kColumns;
  const uint64_t row = uint64_t{blockIdx.y} * kDp4aBlockRows + threadIdx.x * kRowsPerThread;
  const bool counts = row < uint64_t{args.step_count} * kStepRows;
  uint4 limbs[kQueries][4];
#pragma unroll
  for (int q = 0; q < kQueries; ++q) {
#pragma unroll
    for (int l = 0; l < 4; ++l) {
      const uint64_t at =
          limb_row(first_query + static_cast<uint32_t>(q), static_cast<uint32_t>(l)) *
              args.limb_pitch +
          row;
      limbs[q][l] =
          counts ? *reinterpret_cast<const uint4*>(args.limbs + at) : make_uint4(0, 0, 0, 0);
    }
  }
  const int8_t* bytes = args.columns + (counts ? row : 0);
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t first = blockIdx.x * columns_per_block;
  for (uint32_t c = first; c < first + columns_per_block && c < args.column_count;
       c += kDp4aColumnGrain) {
    typename Epilogue::Result mine[kQueries] = {};  // number `lane` of these columns' results
    for (uint32_t j = 0; j < kDp4aColumnGrain; j += kColumnsAhead) {
      uint4 v[kColumnsAhead];
#pragma unroll
      for (uint32_t k = 0; k < kColumnsAhead; ++k) {
        // After the last column the last one is read again, and not used.
        const uint32_t column = min(c + j + k, args.column_count - 1);
        v[k] = load_once_16(bytes + column * args.column_pitch);
      }
#pragma unroll
      for (uint32_t k = 0; k < kColumnsAhead; k += kTogether) {
#pragma unroll
        for (int q = 0; q < kQueries; ++q) {
          int32_t sums[kTogether + 3] = {};
#pragma unroll
          for (uint32_t i = 0; i < kTogether; ++i) {
            const uint4& column = v[k + i];
#pragma unroll
            for (uint32_t l = 0; l < 4; ++l) {
              int32_t& sum = sums[l + i];
              sum = dot4_s8_s8(column.x, limbs[q][l].x, sum);
              sum = dot4_s8_s8(column.y, limbs[q][l].y, sum);
              sum = dot4_s8_s8(column.z, limbs[q][l].z, sum);
              sum = dot4_s8_s8(column.w, limbs[q][l].w, sum);
            }
          }
          const auto result = Epilogue::sum_over_warp(Epilogue::combine(sums));
          if (lane == (j + k) / kTogether) mine[q] = result;
        }
      }
    }
    if (lane >= kDp4aColumnGrain / kTogether || c + lane * kTogether >= args.column_count) continue;
#pragma unroll
    for (int q = 0; q < kQueries; ++q) {
      Epilogue::add(args.products + (first_query + static_cast<uint32_t>(q)) * args.product_pitch +
                        c / kTogether + lane,
                    mine[q]);
    }
  }
}

}  // namespace
}  // namespace blindfuse
