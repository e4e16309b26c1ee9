// The product for four queries and more on Hopper: wgmma m64nNk32 of signed bytes.
//
// Columns are M, limbs N, rows K; the matrix goes from memory into registers, as in scan_mma.cuh.
// But limbs are read from shared memory by the tensor cores themselves, and only once for 64
// columns. A block has two warpgroups of 64 columns, and up to 64 queries. ChunkWalk has the order
// of the steps.
//
// Napkin, on an H200 (132 multiprocessors, 1.75 GHz, 4.8 TB/s: 21 matrix bytes a clock each): at
// 4096 multiply-adds a clock, of which a query's product with a byte takes 4, memory is the limit
// up to 49 queries. Limbs come from the second-level cache once for every 128 columns: with 64
// queries twice as many bytes as the matrix has, 48 bytes a clock for both at the full rate, which
// is more than that cache is said to deliver (about 25): half the dense peak is what to expect
// there.
#pragma once

#include <cstdint>

#include "cuda/scan/kernels/chunk_walk.h"
#include "cuda/scan/kernels/tensor_scan.cuh"
#include "cuda/scan/kernels/wgmma.cuh"
#include "cuda/scan/kernels/word_products.cuh"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

constexpr uint32_t kWgmmaThreads = 256;
using WgmmaTiles = ColumnTiles<kWgmmaThreads, 16>;

// The 128-byte swizzle of a stage's limbs.
__device__ __forceinline__ uint32_t swizzled_chunk(uint32_t limb_row, uint32_t chunk) {
  return limb_row * kStepRows + (chunk ^ limb_row % 8) * 16;
}

// A thread's bytes of half a step: 16 of each of the columns g and g + 8 of its warp (g = lane /
// 4).
struct WgmmaBytes {
  uint4 columns[2];
};

// Blocks of a multiprocessor at the same time.
constexpr int wgmma_blocks(int limb_rows) { return limb_rows <= 32 ? 3 : limb_rows <= 128 ? 2 : 1; }

// The limbs are in LimbOrder::kWgmma. kLimbRows: 4 for each query of a tile, a multiple of 32.
// Grid: (walkers, tiles of queries).
template <int kLimbRows, int kStages, typename Epilogue = WordProducts>
__global__ void __launch_bounds__(kWgmmaThreads, wgmma_blocks(kLimbRows))
    scan_wgmma(typename Epilogue::Args args) {
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t warp = threadIdx.x / 32;
  take_query_tile<kLimbRows>(args);

  const uint32_t columns = WgmmaTiles::warp_columns(args.column_count);
  const auto first_column = [&](uint32_t tile) {
    return (tile * WgmmaTiles::kWarps + warp) * columns;
  };
  ChunkWalk walk(WgmmaTiles::count(args.column_count), args.step_count, blockIdx.x, gridDim.x);
  uint32_t left = walk.total();
  if (left == 0) return;
  uint8_t* const shared = dynamic_shared_memory();

  // The block's threads copy 32 rows at a time, into stages as in scan_mma.cuh.
  ChunkWalk limbs_ahead = walk;
  uint32_t limbs_left = left;
  uint32_t stage_to_fill = 0;
  const auto fetch_limbs = [&] {
    if (limbs_left > 0) {
      const uint32_t first_row = threadIdx.x / 8, chunk = threadIdx.x % 8;
      uint8_t* to = shared + stage_to_fill * (kLimbRows * kStepRows);
      const int8_t* from = args.limbs + first_row * args.limb_pitch +
                           uint64_t{limbs_ahead.step()} * kStepRows + chunk * 16;
#pragma unroll
      for (uint32_t row = 0; row < kLimbRows; row += kWgmmaThreads / 8) {
        copy_16_async(to + swizzled_chunk(first_row + row, chunk), from + row * args.limb_pitch);
      }
      limbs_ahead.advance();
      --limbs_left;
    }
    commit_copies();
    stage_to_fill = stage_to_fill + 1 == kStages ? 0 : stage_to_fill + 1;
  };

  const uint64_t once = evict_first_policy();
  const int8_t* from[2];
  const auto go_to_piece = [&] {
#pragma unroll
    for (uint32_t k = 0; k < 2; ++k) {
      const uint32_t column = column_to_read(args, first_column(walk.tile()), columns, k, lane);
      from[k] = args.columns + column * args.column_pitch + uint64_t{walk.step()} * kStepRows +
                lane % 4 * 16;
    }
  };
  const auto load_step = [&](WgmmaBytes(&bytes)[2]) {
#pragma unroll
    for (uint32_t k = 0; k < 2; ++k) {
#pragma unroll
      for (uint32_t h = 0; h < 2; ++h) {
        bytes[h].columns[k] = load_once_16(from[k] + h * 64, once);
      }
    }
  };
  const auto pin_bytes = [](WgmmaBytes(&bytes)[2]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) pin(bytes[i / 2].columns[i % 2]);
  };

#pragma unroll
  for (int i = 0; i < kStages - 1; ++i) fetch_limbs();
  WgmmaBytes bytes[2];
  go_to_piece();
  load_step(bytes);
  int32_t sums[kLimbRows / 2] = {};
  uint32_t stage = 0;
  while (true) {
    wait_copies<kStages - 2>();
    publish_shared();
    __syncthreads();  // this step's limbs are there for all, and all are done with the last step's
    const uint8_t* limbs = shared + stage * (kLimbRows * kStepRows);
    pin(sums);
    pin_bytes(bytes);
    wgmma_fence();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const uint4& upper = bytes[h].columns[0];
        const uint4& lower = bytes[h].columns[1];
        const uint32_t a[4] = {word_of(upper, 2 * i), word_of(lower, 2 * i),
                               word_of(upper, 2 * i + 1), word_of(lower, 2 * i + 1)};
        wgmma_s8_s8<kLimbRows>(sums, a, limbs + h * 64 + i * 32);
      }
    }
    wgmma_commit();
    // The next step is prepared while the tensor cores work.
    const uint32_t tile = walk.tile();
    const bool piece_ends = walk.advance();
    if (piece_ends) {
      go_to_piece();
    } else {
#pragma unroll
      for (int k = 0; k < 2; ++k) from[k] += kStepRows;
    }
    WgmmaBytes next[2];
    if (--left > 0) load_step(next);
    fetch_limbs();
    stage = stage + 1 == kStages ? 0 : stage + 1;
    wgmma_wait();
    pin(sums);
    pin_bytes(bytes);
    if (left == 0 || piece_ends) {
      Epilogue::template add_wgmma<kLimbRows>(sums, args, first_column(tile), columns, lane);
      if (left == 0) break;
#pragma unroll
      for (int i = 0; i < kLimbRows / 2; ++i) sums[i] = 0;
    }
    bytes[0] = next[0];
    bytes[1] = next[1];
  }
  wait_copies<0>();
}

}  // namespace
}  // namespace blindfuse
