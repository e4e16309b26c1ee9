// R_g of a pack for every automorphism g, from the hint polynomials of its columns: word for word
// those of PackingTableBuilder::Traces (host/cpu/packing).
//
// R_g(w^m) = 1/2048 F[m][m g] with F[m][m'] = sum over columns c of w^(m c) h_c(w^m'), a
// two-dimensional NTT. Hints lie coefficient by coefficient here, columns side by side, so the NTT
// over columns comes first: then rows, exchanged with columns, are transformed over coefficients,
// turned from the order of m' into that of g, and exchanged again.
//
// Napkin, a pack: 4096 transforms of 3520 instructions of a warp are 27,000 clocks of the 528
// schedulers of an H100, 16 us; a square goes to memory and back four times, 134 MB, 40 us at 3.35
// TB/s. Bound by memory, and negligible compared with the product. Unmeasured.
#pragma once

#include <cstdint>

#include "cuda/packing/kernels/ntt.cuh"
#include "cuda/packing/kernels/table_args.h"
#include "src/arithmetic/ring/automorphism.h"
#include "src/arithmetic/ring/modulus_switch.h"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

constexpr uint32_t kRowSharedBytes = kRingWords * sizeof(uint32_t);

// The value of g's result at a point is that of its argument at another (ring::apply).
__device__ __forceinline__ uint32_t rotated_point(const ring::Automorphism& g, uint32_t point) {
  constexpr auto kOrbit = static_cast<uint32_t>(ring::kOrbit);
  const uint32_t half = (point ^ (g.negative ? kOrbit : 0)) & kOrbit;
  return half + (point + static_cast<uint32_t>(g.power)) % kOrbit;
}

__device__ __forceinline__ uint32_t* shared_polynomials() {
  return reinterpret_cast<uint32_t*>(dynamic_shared_memory());
}

__device__ __forceinline__ uint32_t* square_row(uint32_t* squares, uint32_t pack, uint32_t row) {
  return squares + (uint64_t{pack} * kRingWords + row) * kRingWords;
}

// Row i of a square: the values of 1/2048 sum over the pack's columns c of h_c[i] X^c, lifted to
// the packing modulus. Grid: (2048 coefficients, packs); kRowSharedBytes.
__global__ void __launch_bounds__(kNttThreads) ntt_columns(TraceArgs args) {
  uint32_t* const polynomial = shared_polynomials();
  const uint64_t first_column = uint64_t{blockIdx.y} * kRingWords;
  const uint32_t* hints = args.hints + blockIdx.x * args.column_count;
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) {
    const uint32_t place = threadIdx.x + kNttThreads * i;
    const uint64_t column = first_column + place;
    const uint32_t word = column < args.column_count ? hints[column] : 0;
    polynomial[place] = args.ring.scale.times(ring::switch_to_q(word), args.ring.field);
  }
  ntt_forward(args.ring, polynomial);
  uint32_t* const row = square_row(args.squares, blockIdx.y, blockIdx.x);
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) {
    const uint32_t point = threadIdx.x + kNttThreads * i;
    row[point] = polynomial[point];
  }
}

// Row m of a square, coefficients: its values at the points m g, in the order of g. Grid: (2048
// points, packs); kRowSharedBytes.
__global__ void __launch_bounds__(kNttThreads) ntt_and_rotate_rows(TraceArgs args) {
  uint32_t* const polynomial = shared_polynomials();
  uint32_t* const row = square_row(args.squares, blockIdx.y, blockIdx.x);
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) {
    const uint32_t place = threadIdx.x + kNttThreads * i;
    polynomial[place] = row[place];
  }
  ntt_forward(args.ring, polynomial);
  const ring::Automorphism m{blockIdx.x % ring::kOrbit, blockIdx.x >= ring::kOrbit};
#pragma unroll
  for (uint32_t i = 0; i < kNttValues; ++i) {
    const uint32_t place = threadIdx.x + kNttThreads * i;
    row[place] = polynomial[rotated_point(m, place)];
  }
}

constexpr uint32_t kTransposeThreads = 256;
constexpr uint32_t kTransposeSharedBytes = 2 * 32 * 32 * sizeof(uint32_t);

// Exchanges rows and columns of a square, in place. A block has two tiles of 32 x 32 words, which
// change places. Grid: (64, 64, packs); kTransposeSharedBytes.
__global__ void __launch_bounds__(kTransposeThreads) transpose_squares(uint32_t* squares) {
  if (blockIdx.x > blockIdx.y) return;  // the block of the other tile does it
  uint32_t* const tiles = shared_polynomials();
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint32_t* const upper = square_row(squares, blockIdx.z, blockIdx.x * 32) + blockIdx.y * 32;
  uint32_t* const lower = square_row(squares, blockIdx.z, blockIdx.y * 32) + blockIdx.x * 32;
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
