// The product for four queries and more, on the tensor cores: mma.sync m16n8k32 of signed bytes,
// with the limbs in rows (LimbOrder::kRows). It is there for comparison with scan_mma.cuh on a GPU.
//
// Columns are M, limbs of queries are N, rows are K; a block has up to 256 columns and 32
// queries.
// A byte of the matrix is used by one warp alone, so it goes from memory into that warp's registers
// without a detour through shared memory, 16 bytes a thread. Limbs, which all warps use, go through
// shared memory, kStages steps ahead. What the instruction calls its k-th row need not be the k-th
// row of the matrix as long as both operands agree: a thread's 16 bytes are four words of two
// instructions.
//
// Napkin, on an H200 (132 multiprocessors, 1.75 GHz, 4.8 TB/s: 21 matrix bytes a clock each): an
// instruction is 4096 multiply-adds, of which a query's product with a byte takes 4; at 0.62 of the
// dense peak (4096 a clock), which is what mma.sync is said to reach on Hopper, 2540 / (4 batch)
// bytes a clock: memory is the limit up to 30 queries. Shared memory is read for limbs only: 4
// batch bytes for every 32 columns and row, two thirds of its 128 bytes a clock with 32 queries.
// Limbs come from the second-level cache once for every 256 columns: with 32 queries half as many
// bytes as the matrix has.
#pragma once

#include <cstdint>

#include "cuda/scan/kernels/tensor_scan.cuh"
#include "cuda/scan/kernels/word_products.cuh"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

constexpr uint32_t kMmaRowsThreads = 256;
using MmaRowsTiles = ColumnTiles<kMmaRowsThreads, 32>;

// The limbs of a step in shared memory: kLimbRows rows of 128 bytes. Eight threads read 64 bytes of
// two neighbouring rows at a time, so every other row has its halves exchanged: no two of them use
// the same banks.
__device__ __forceinline__ uint32_t staged_chunk(uint32_t limb_row, uint32_t chunk) {
  return limb_row * kStepRows + (chunk ^ (limb_row % 2 * 4)) * 16;
}

// The matrix bytes of half a step that a thread holds: 16 of each of the columns g, g + 8, g + 16
// and g + 24 of its warp (g = lane / 4).
struct HalfStep {
  uint4 columns[4];
};

// A walk over (tile of columns, step) pairs, tile by tile.
struct EvenWalk {
  uint64_t at;
  uint64_t end;
  uint32_t step_count;

  __device__ __forceinline__ uint32_t tile() const {
    return static_cast<uint32_t>(at / step_count);
  }
  __device__ __forceinline__ uint32_t step() const {
    return static_cast<uint32_t>(at % step_count);
  }
};

template <int kLimbRows>
struct MmaRowsSums {
  int32_t sums[2][kLimbRows / 8][4];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int m = 0; m < 2; ++m) {
#pragma unroll
      for (int n = 0; n < kLimbRows / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) sums[m][n][i] = 0;
      }
    }
  }

  // Multiplies half h of a step.
  __device__ __forceinline__ void add(const HalfStep& bytes, const uint8_t* limbs, uint32_t h,
                                      uint32_t lane) {
#pragma unroll
    for (int n = 0; n < kLimbRows / 8; ++n) {
      const uint4 b = load_shared_16(
          limbs + staged_chunk(static_cast<uint32_t>(n) * 8 + lane / 4, h * 4 + lane % 4));
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const uint32_t b_words[2] = {word_of(b, 2 * i), word_of(b, 2 * i + 1)};
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          const uint4& upper = bytes.columns[2 * m];
          const uint4& lower = bytes.columns[2 * m + 1];
          const uint32_t a_words[4] = {word_of(upper, 2 * i), word_of(lower, 2 * i),
                                       word_of(upper, 2 * i + 1), word_of(lower, 2 * i + 1)};
          mma_s8_s8(sums[m][n], a_words, b_words);
        }
      }
    }
  }

  // Adds the products to those of the warp's columns, from first_column on.
  __device__ __forceinline__ void add_to(const ScanArgs& args, uint32_t first_column,
                                         uint32_t column_count, uint32_t lane) {
#pragma unroll
    for (int four = 0; four < kLimbRows / 16; ++four) {
#pragma unroll
      for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          WordProducts::add_column(args, four, first_column, column_count,
                                   static_cast<uint32_t>(2 * m + i), lane,
                                   &sums[m][2 * four][2 * i], &sums[m][2 * four + 1][2 * i]);
        }
      }
    }
  }
};

// kLimbRows: 4 for each query of a tile, a multiple of 16. Grid: (blocks that share the walk
// evenly, tiles of queries).
template <int kLimbRows, int kStages>
__global__ void __launch_bounds__(kMmaRowsThreads, 1) scan_mma_rows(ScanArgs args) {
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t warp = threadIdx.x / 32;
  take_query_tile<kLimbRows>(args);

  const uint32_t columns = MmaRowsTiles::warp_columns(args.column_count);
  const auto first_column = [&](uint32_t tile) {
    return (tile * MmaRowsTiles::kWarps + warp) * columns;
  };
  const uint64_t all = uint64_t{MmaRowsTiles::count(args.column_count)} * args.step_count;
  EvenWalk walk{all * blockIdx.x / gridDim.x, all * (blockIdx.x + 1) / gridDim.x, args.step_count};
  if (walk.at == walk.end) return;
  EvenWalk limbs_ahead = walk;
  uint8_t* const shared = dynamic_shared_memory();

  // Starts to bring the limbs of the next step that has none on its way; a group even when none is
  // left, so that groups can be counted.
  uint32_t stage_to_fill = 0;
  const auto fetch_limbs = [&] {
    if (limbs_ahead.at < limbs_ahead.end) {
      uint8_t* to = shared + stage_to_fill * (kLimbRows * kStepRows);
      const int8_t* from = args.limbs + uint64_t{limbs_ahead.step()} * kStepRows;
#pragma unroll
      for (uint32_t i = threadIdx.x; i < kLimbRows * 8; i += kMmaRowsThreads) {
        copy_16_async(to + staged_chunk(i / 8, i % 8), from + i / 8 * args.limb_pitch + i % 8 * 16);
      }
      ++limbs_ahead.at;
    }
    commit_copies();
    stage_to_fill = stage_to_fill + 1 == kStages ? 0 : stage_to_fill + 1;
  };

  const auto load_half = [&](const EvenWalk& at, uint32_t h, HalfStep& bytes) {
    const uint32_t first = first_column(at.tile());
    const int8_t* from = args.columns + uint64_t{at.step()} * kStepRows + h * 64 + lane % 4 * 16;
#pragma unroll
    for (uint32_t k = 0; k < 4; ++k) {
      const uint32_t column = column_to_read(args, first, columns, k, lane);
      bytes.columns[k] = load_once_16(from + column * args.column_pitch);
    }
  };

#pragma unroll
  for (int i = 0; i < kStages - 1; ++i) fetch_limbs();
  // With few queries a step is over before what the next one reads has come, so all of that is
  // asked for at its beginning; with many, registers are scarce, and a half takes the place of the
  // one that has been used.
  constexpr bool kInPlace = kLimbRows >= 128;
  HalfStep bytes[2];
#pragma unroll
  for (uint32_t h = 0; h < 2; ++h) load_half(walk, h, bytes[h]);
  MmaRowsSums<kLimbRows> sums;
  sums.clear();
  uint32_t stage = 0;
  while (true) {
    const uint32_t tile = walk.tile();
    EvenWalk next = walk;
    ++next.at;
    const bool more = next.at < next.end;
    HalfStep next_bytes[2];
    if constexpr (!kInPlace) {
#pragma unroll
      for (uint32_t h = 0; h < 2; ++h) {
        next_bytes[h] = bytes[h];
        if (more) load_half(next, h, next_bytes[h]);
      }
    }
    wait_copies<kStages - 2>();
    __syncthreads();  // this step's limbs are there for all, and all are done with the last step's
    fetch_limbs();
#pragma unroll
    for (uint32_t h = 0; h < 2; ++h) {
      sums.add(bytes[h], shared + stage * (kLimbRows * kStepRows), h, lane);
      if constexpr (kInPlace) {
        if (more) load_half(next, h, bytes[h]);
      } else {
        bytes[h] = next_bytes[h];
      }
    }
    stage = stage + 1 == kStages ? 0 : stage + 1;
    walk = next;
    if (!more || walk.tile() != tile) {
      sums.add_to(args, first_column(tile), columns, lane);
      if (!more) break;
      sums.clear();
    }
  }
  wait_copies<0>();
}

}  // namespace
}  // namespace blindfuse
