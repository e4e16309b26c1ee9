// The product for four queries and more, on the tensor cores: mma.sync m16n8k32 of signed bytes.
//
// Limbs of queries are M, columns are N, rows are K; a block has up to 256 columns and 32 queries.
// A byte of the matrix is used by one warp alone, so it goes from memory into that warp's registers
// without a detour through shared memory: 16 bytes a lane, which are operand B of two instructions
// as they are. Limbs, which all warps use, go through shared memory, kStages steps ahead, in the
// order of operand A's fragments (LimbOrder::kMma): the 16 bytes that a lane loads are the four
// registers of one. No register is copied in the loop.
//
// A step of 128 rows is, a warp, for each four queries (16 limb rows): 4 loads of limbs and 16
// products; and 8 loads of the matrix, which take the place of what was used, so that 8 are in
// flight when a step begins and 4 at the least. ChunkWalk has the order of the steps.
//
// Napkin, for an A100 (108 multiprocessors, 1.41 GHz, 2.04 TB/s: 13.4 matrix bytes a clock each):
// an instruction is 4096 multiply-adds, 2 clocks of the dense peak (2048 a clock), of which a
// query's product with a byte takes 4: memory is the limit up to 38 queries. Shared memory is read
// for limbs only: 4 batch bytes for every 32 columns and row, half of its 128 bytes a clock at that
// peak. Limbs come from the second-level cache once for every 256 columns: with 32 queries half as
// many bytes as the matrix has. An H200 has 21 bytes a clock each and, by mma.sync, 0.62 of 4096
// multiply-adds: the limit is memory up to 30 queries. All of this is predicted.
#pragma once

#include <cstdint>

#include "cuda/scan/kernels/chunk_walk.h"
#include "cuda/scan/kernels/tensor_scan.cuh"
#include "cuda/scan/kernels/word_products.cuh"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

constexpr uint32_t kMmaThreads = 256;
constexpr uint32_t kMmaWarpColumns = 32;
constexpr uint32_t kMmaColumnEights = kMmaWarpColumns / 8;
using MmaTiles = ColumnTiles<kMmaThreads, kMmaWarpColumns>;

// The matrix bytes of half a step that a lane holds: 16 of each of the columns g, g + 8, g + 16 and
// g + 24 of its warp (g = lane / 4).
struct MmaBytes {
  uint4 columns[kMmaColumnEights];
};

// The sums of a warp's columns: [four queries][eight columns], fragments of 16 x 8.
template <int kLimbRows>
struct MmaSums {
  static constexpr uint32_t kFours = kLimbRows / kLimbRowsInFour;
  int32_t sums[kFours][kMmaColumnEights][4];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (uint32_t m = 0; m < kFours; ++m) {
#pragma unroll
      for (uint32_t n = 0; n < kMmaColumnEights; ++n) {
#pragma unroll
        for (uint32_t i = 0; i < 4; ++i) sums[m][n][i] = 0;
      }
    }
  }

  // Multiplies half h of the step whose limbs are there.
  __device__ __forceinline__ void add(const MmaBytes& bytes, const uint8_t* limbs, uint32_t h,
                                      uint32_t lane) {
#pragma unroll
    for (uint32_t m = 0; m < kFours; ++m) {
#pragma unroll
      for (uint32_t i = 0; i < 2; ++i) {
        const uint4 v = load_shared_16(limbs + m * kFragmentStepBytes +
                                       (2 * h + i) * kFragmentBytes + lane * 16);
        const uint32_t a[4] = {v.x, v.y, v.z, v.w};
        uint32_t b[kMmaColumnEights][2];
#pragma unroll
        for (uint32_t n = 0; n < kMmaColumnEights; ++n) {
          b[n][0] = word_of(bytes.columns[n], static_cast<int>(2 * i));
          b[n][1] = word_of(bytes.columns[n], static_cast<int>(2 * i + 1));
        }
        mma_s8_s8_four(sums[m], a, b);
      }
    }
  }
};

// Blocks of a multiprocessor at the same time. Sums are 16 registers for each four queries, the
// matrix bytes 32, and pointers and the walk 40 to 50: from 16 queries on, a lane does not have
// enough with the 128 registers that two blocks leave it.
constexpr int mma_blocks(int limb_rows) { return limb_rows <= 32 ? 2 : 1; }

// The limbs are in LimbOrder::kMma. kLimbRows: 4 for each query of a tile, a multiple of 16. Grid:
// (walkers, tiles of queries).
template <int kLimbRows, int kStages, typename Epilogue = WordProducts>
__global__ void __launch_bounds__(kMmaThreads, mma_blocks(kLimbRows))
    scan_mma(typename Epilogue::Args args) {
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t warp = threadIdx.x / 32;
  take_query_tile<kLimbRows>(args);

  const uint32_t columns = MmaTiles::warp_columns(args.column_count);
  ChunkWalk walk(MmaTiles::count(args.column_count), args.step_count, blockIdx.x, gridDim.x);
  uint32_t left = walk.total();
  if (left == 0) return;
  uint8_t* const shared = dynamic_shared_memory();

  // Starts to bring the limbs of the next step that has none on its way; a group even when there
  // are none, so that groups can be counted. The block's threads copy two fours' at a time.
  ChunkWalk limbs_ahead = walk;
  const auto fetch_limbs = [&](bool there_are, uint32_t stage_to_fill) {
    if (there_are) {
      constexpr uint32_t kCopiesOfFour = kFragmentStepBytes / 16;
      constexpr uint32_t kFoursAtOnce = kMmaThreads / kCopiesOfFour;
      const uint32_t four = threadIdx.x / kCopiesOfFour;
      const uint32_t place = threadIdx.x % kCopiesOfFour * 16;
      uint8_t* to = shared + stage_to_fill * (kLimbRows * kStepRows) + four * kFragmentStepBytes;
      const int8_t* from = args.limbs + four * kLimbRowsInFour * args.limb_pitch +
                           uint64_t{limbs_ahead.step()} * kFragmentStepBytes;
#pragma unroll
      for (uint32_t m = 0; m < MmaSums<kLimbRows>::kFours; m += kFoursAtOnce) {
        if (kLimbRows < kFoursAtOnce * kLimbRowsInFour && four > 0) break;
        copy_16_async(to + m * kFragmentStepBytes + place,
                      from + m * kLimbRowsInFour * args.limb_pitch + place);
      }
      limbs_ahead.advance();
    }
    commit_copies();
  };

  const uint64_t once = evict_first_policy();
  const int8_t* from[kMmaColumnEights];
  const auto first_column = [&](uint32_t tile) {
    return (tile * MmaTiles::kWarps + warp) * columns;
  };
  const auto go_to_piece = [&] {
#pragma unroll
    for (uint32_t n = 0; n < kMmaColumnEights; ++n) {
      const uint32_t column = column_to_read(args, first_column(walk.tile()), columns, n, lane);
      from[n] = args.columns + column * args.column_pitch + uint64_t{walk.step()} * kStepRows +
                lane % 4 * 16;
    }
  };
  MmaBytes bytes[2];
  const auto load_half = [&](uint32_t h) {
#pragma unroll
    for (uint32_t n = 0; n < kMmaColumnEights; ++n) {
      bytes[h].columns[n] = load_once_16(from[n] + h * 64, once);
    }
  };

#pragma unroll
  for (uint32_t i = 0; i < kStages - 1; ++i) fetch_limbs(left > i, i);
  go_to_piece();
#pragma unroll
  for (uint32_t h = 0; h < 2; ++h) load_half(h);
  MmaSums<kLimbRows> sums;
  sums.clear();
  uint32_t stage = 0;
  while (true) {
    wait_copies<kStages - 2>();
    __syncthreads();  // this step's limbs are there for all, and all are done with the last step's
    fetch_limbs(left > kStages - 1, (stage == 0 ? kStages : stage) - 1);
    const uint32_t tile = walk.tile();
    const bool piece_ends = walk.advance();
    const bool more = --left > 0;
    if (piece_ends) {
      go_to_piece();
    } else {
#pragma unroll
      for (uint32_t n = 0; n < kMmaColumnEights; ++n) from[n] += kStepRows;
    }
#pragma unroll
    for (uint32_t h = 0; h < 2; ++h) {
      sums.add(bytes[h], shared + stage * (kLimbRows * kStepRows), h, lane);
      if (more) load_half(h);
    }
    stage = stage + 1 == kStages ? 0 : stage + 1;
    if (piece_ends || !more) {
      Epilogue::add_mma(sums.sums, args, first_column(tile), columns, lane);
      if (!more) break;
      sums.clear();
    }
  }
  wait_copies<0>();
}

}  // namespace
}  // namespace blindfuse
