// The traces of a row of the second level (docs/PROTOCOL.md, section 20): word for word those of
// SecondLevelPacker and Traces (host/cpu/packing).
//
// h_k = sum over the blocks j of 2048 rows of a2_j E_{k,j}(X^-1), for every column k of the row.
// X -> X^-1 exchanges the halves of the points, so that the entries' own values are multiplied with
// those of a2_j at the other half, and the products go there.
//
// Here the values at the points come first, and hints come column by column. Rows and columns of
// the squares exchanged, row m' has h_c(w^m') for all c, which is a polynomial of 1024 coefficients
// at the points of the same half: no more than their NTT is wanted, F[m][m'] = scale * sum over c
// of w^(m c) h_c(w^m'). It stays in row m'. R_g at the point w^m, F[m][m g], then is a word of row
// m + i of column m, g = 5^i: the chain reads diagonals (trace_word), and nothing is turned or
// exchanged again.
//
// Napkin, a query of 1024 columns and 2048 rows: 2048 transforms of 3520 instructions of a warp are
// 14,000 clocks of the 528 schedulers of an H100, 8 us; its squares go to memory and back two and a
// half times, 42 MB, 13 us at 3.35 TB/s. A chain of 1023 switches takes some 6 ms of one
// multiprocessor, 45 us of all of them. Unmeasured.
#pragma once

#include <cstdint>

#include "cuda/packing/kernels/number_sequences.cuh"
#include "cuda/packing/kernels/squares.cuh"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

// Row c of the squares of a pack of a query: h_c at the points. Grid: (columns, queries);
// kRowSharedBytes.
__global__ void __launch_bounds__(kNttThreads) second_column_values(SecondLevelArgs args) {
  constexpr ring::PrimeField kField(ring::kPackingModulus);
  const uint32_t column = blockIdx.x, query = blockIdx.y;
  uint32_t* const polynomial = shared_polynomials();
  uint32_t sums[kNttValues] = {};
#pragma unroll 1
  for (uint32_t first = 0; first < args.row_count; first += kRingWords) {
#pragma unroll
    for (uint32_t i = 0; i < kNttValues; ++i) {
      const uint32_t place = threadIdx.x + kNttThreads * i;
      const uint32_t row = first + place;
      polynomial[place] =
          row < args.row_count ? kField.reduce_signed(entry_at(args, query, row, column)) : 0;
    }
    ntt_forward(args.ring, polynomial);
#pragma unroll
    for (uint32_t i = 0; i < kNttValues; ++i) {
      const uint32_t point = threadIdx.x + kNttThreads * i;
      const uint32_t mask = __ldg(args.blocks + first + (point ^ kOrbitWords));
      sums[i] = kField.add(sums[i], kField.multiply(polynomial[point], mask));
    }
  }
  uint32_t* const row = square_row(args.squares, query * args.pack_count + column / kOrbitWords,
                                   column % kOrbitWords);
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) {
    const uint32_t point = threadIdx.x + kNttThreads * i;
    row[point ^ kOrbitWords] = sums[i];
  }
}

// Row m' of the squares: of each, from the values of all columns of the pack at the m'-th point of
// its half to F[m][m'] for all m. Grid: (1024 points, packs of queries); kRowSharedBytes.
__global__ void __launch_bounds__(kNttThreads) second_traces(SecondLevelArgs args) {
  constexpr ring::PrimeField kField(ring::kPackingModulus);
  const uint32_t first_column = blockIdx.y % args.pack_count * kOrbitWords;
  uint32_t* const polynomial = shared_polynomials();
  uint32_t* const row = square_row(args.squares, blockIdx.y, blockIdx.x);
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) {
    const uint32_t place = threadIdx.x + kNttThreads * i;
    const uint32_t column = first_column + place % kOrbitWords;
    polynomial[place] = column < args.column_count ? args.scale.times(row[place], kField) : 0;
  }
  ntt_forward<NttOf::kHalves>(args.ring, polynomial);
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) {
    const uint32_t place = threadIdx.x + kNttThreads * i;
    row[place] = polynomial[place];
  }
}

// R_g at a point, from the squares of a pack of a query. Threads at neighbouring points read
// neighbouring words of neighbouring rows: of a sector of eight words, the next seven powers read
// one each, from the nearest cache.
__device__ __forceinline__ uint32_t trace_word(const uint32_t* squares, const ring::Automorphism& g,
                                               uint32_t point) {
  return __ldg(squares + uint64_t{rotated_point(g, point % kOrbitWords)} * kRingWords + point);
}

}  // namespace
}  // namespace blindfuse
