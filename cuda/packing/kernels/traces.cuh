// R_g of a pack for every power g of 5, from the hint polynomials of its columns: word for word
// those of PackingTableBuilder (host/cpu/packing).
//
// R_g(X) = 1/1024 sum over the pack's columns c of X^c h_c(X^g), and so R_g(w^m) = 1/1024 F[m][m g]
// with F[m][m'] = sum over c of w^(m c) h_c(w^m'), a two-dimensional NTT. A point and what powers
// of 5 make of it are in the same half, so that m and m' are, too. There, X^1024 is a constant, i
// or -i, and h_c has no more than the 1024 coefficients h_c[j] + X^1024 h_c[1024 + j], j < 1024.
//
// Hints lie coefficient by coefficient here, columns side by side, so the NTT over columns comes
// first. That of the polynomial with coefficients h_c[j] for X^c and h_c[1024 + j] for X^(1024 + c)
// brings both coefficients together, for both halves, in its first level. Then rows, exchanged with
// columns in both squares, are transformed over j, turned from the order of m' into that of g, and
// exchanged again.
//
// Napkin, a pack: 2048 transforms of 3520 instructions of a warp are 14,000 clocks of the 528
// schedulers of an H100, 8 us; two squares go to memory and back four times, 67 MB, 20 us at 3.35
// TB/s. Bound by memory, and negligible compared with the product. Unmeasured.
#pragma once

#include <cstdint>

#include "cuda/packing/kernels/squares.cuh"
#include "cuda/packing/kernels/transpose_squares.cuh"
#include "src/arithmetic/ring/modulus_switch.h"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

// Row j of a pack's squares: the values of 1/1024 sum over the pack's columns c of
// (h_c[j] + X^1024 h_c[1024 + j]) X^c, lifted to the packing modulus. Grid: (1024 pairs of
// coefficients, packs); kRowSharedBytes.
__global__ void __launch_bounds__(kNttThreads) ntt_columns(TraceArgs args) {
  constexpr ring::PrimeField kField(ring::kPackingModulus);
  constexpr auto kScale = ring::MontgomeryConstant::of(kField.inverse(kOrbitWords), kField);
  uint32_t* const polynomial = shared_polynomials();
  const uint64_t first_column = uint64_t{blockIdx.y} * kOrbitWords;
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) {
    const uint32_t place = threadIdx.x + kNttThreads * i;
    const uint64_t coefficient = blockIdx.x + (place & kOrbitWords);
    const uint64_t column = first_column + place % kOrbitWords;
    const uint32_t word =
        column < args.column_count ? args.hints[coefficient * args.column_count + column] : 0;
    polynomial[place] = kScale.times(ring::switch_to_q(word), kField);
  }
  ntt_forward(args.ring, polynomial);
  uint32_t* const row = square_row(args.squares, blockIdx.y, blockIdx.x);
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) {
    const uint32_t point = threadIdx.x + kNttThreads * i;
    row[point] = polynomial[point];
  }
}

// Row k of a pack's squares, of each the coefficients of a polynomial: for point m, the k-th of the
// square's half, the values at the points m g, in the order of g. Grid: (1024 points, packs);
// kRowSharedBytes.
__global__ void __launch_bounds__(kNttThreads) ntt_and_rotate_rows(TraceArgs args) {
  uint32_t* const polynomial = shared_polynomials();
  uint32_t* const row = square_row(args.squares, blockIdx.y, blockIdx.x);
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) {
    const uint32_t place = threadIdx.x + kNttThreads * i;
    polynomial[place] = row[place];
  }
  ntt_forward<NttOf::kHalves>(args.ring, polynomial);
  const ring::Automorphism m{blockIdx.x};
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) {
    const uint32_t place = threadIdx.x + kNttThreads * i;
    row[place] = polynomial[rotated_point(m, place)];
  }
}

}  // namespace
}  // namespace blindfuse
