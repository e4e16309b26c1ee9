// The product for four queries and more on Hopper, as scan_wgmma.cuh computes it, with a pipeline
// of other parts: the tensor memory accelerator copies the matrix and the limbs into stages of
// shared memory, and wgmma has both operands there. Columns are M, limbs N, rows K.
//
// A block has three warpgroups. One thread of the first asks for a step after the other: a tile of
// 128 columns, 16 KB, and the limbs of the same rows. The two others have 64 columns each. A stage
// has two barriers with phases (cuda/device/tensor_copy.cuh): `full`, when its bytes are there, and
// `empty`, when the products of all eight warps have read them. No thread waits for the block in
// the loop. ChunkWalk has the order of the steps; all three warpgroups go the same way.
//
// Of the last tile, columns beyond the matrix are zeros that take no memory traffic. Its walkers
// have as many steps as others all the same.
//
// Napkin, on an H200: 4.8 TB/s that take 0.7 us to come are 3.4 MB on their way, 25 KB for each of
// 132 multiprocessors. The stages have 64 KB of the matrix and more, of which one or two are being
// read.
#pragma once

#include <cstdint>

#include "cuda/device/tensor_copy.cuh"
#include "cuda/scan/kernels/chunk_walk.h"
#include "cuda/scan/kernels/scan_tensors.h"
#include "cuda/scan/kernels/tensor_scan.cuh"
#include "cuda/scan/kernels/wgmma.cuh"
#include "cuda/scan/kernels/wgmma_shared.cuh"
#include "cuda/scan/kernels/word_products.cuh"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

constexpr uint32_t kGroupThreads = 128;
constexpr uint32_t kWgmmaTmaThreads = 3 * kGroupThreads;
constexpr uint32_t kProductWarps = 2 * kGroupThreads / 32;
constexpr uint32_t kWarpColumns = 16;
static_assert(kProductWarps * kWarpColumns == kTensorTileColumns);

// A block of 384 threads gets 168 registers for each. The two warpgroups of products take what the
// first one gives up: 168 * 3 = 40 + 232 * 2.
constexpr uint32_t kCopyRegisters = 40;
constexpr uint32_t kProductRegisters = 232;

// kStages stages of a tile of the matrix and kLimbRows limb rows, and two barriers for each.
template <int kLimbRows, int kStages>
struct TensorStages {
  static constexpr uint32_t kLimbBytes = kLimbRows * kStepRows;
  static constexpr uint32_t kStageBytes = kTensorTileBytes + kLimbBytes;
  static constexpr uint32_t kSharedBytes = kStages * (kStageBytes + 2 * sizeof(uint64_t));
  static_assert(kStages * kTensorTileBytes >= 64 << 10, "so much must be on its way at a time");
  static_assert(kSharedBytes <= 227 << 10, "a block has so much shared memory");
  // Operands of wgmma begin at multiples of 1024.
  static_assert(kTensorTileBytes % 1024 == 0 && kLimbBytes % 1024 == 0);
};

// The position of a warpgroup in the stages. Their parity changes each time round.
template <int kStages>
struct StageCursor {
  uint32_t stage = 0;
  uint32_t parity = 0;

  __device__ __forceinline__ void advance() {
    if (++stage < kStages) return;
    stage = 0;
    parity ^= 1;
  }
};

// The limbs are in LimbOrder::kRows. matrix, limbs: of matrix_tensor() and limb_tensor().
// kLimbRows: 4 for each query of a tile, a multiple of 32. Grid: (walkers, tiles of queries).
template <int kLimbRows, int kStages>
__global__ void __launch_bounds__(kWgmmaTmaThreads, 1)
    scan_wgmma_tma(ScanArgs args, const __grid_constant__ TensorMap matrix,
                   const __grid_constant__ TensorMap limbs) {
  using Stages = TensorStages<kLimbRows, kStages>;
  uint8_t* const shared = dynamic_shared_memory();
  auto* const full = reinterpret_cast<uint64_t*>(shared + kStages * Stages::kStageBytes);
  uint64_t* const empty = full + kStages;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      init_barrier(full + stage, 1);
      init_barrier(empty + stage, kProductWarps);
    }
    publish_barriers();
  }
  __syncthreads();

  ChunkWalk walk(tensor_tiles(args.column_count), args.step_count, blockIdx.x, gridDim.x);
  uint32_t left = walk.total();
  StageCursor<kStages> at;
  if (threadIdx.x < kGroupThreads) {
    give_up_registers<kCopyRegisters>();
    if (threadIdx.x != 0) return;
    const uint64_t once = evict_first_policy();
    for (; left > 0; --left) {
      // All stages are empty at first: the phase before phase 0 has parity 1.
      wait_for_phase(empty + at.stage, at.parity ^ 1);
      arrive_and_expect(full + at.stage, Stages::kStageBytes);
      uint8_t* const stage = shared + at.stage * Stages::kStageBytes;
      const uint32_t row = walk.step() * kStepRows;
      copy_box(stage, &matrix, row, walk.tile() * kTensorTileColumns, full + at.stage, once);
      copy_box(stage + kTensorTileBytes, &limbs, row, blockIdx.y * kLimbRows, full + at.stage);
      walk.advance();
      at.advance();
    }
    return;
  }
  take_registers<kProductRegisters>();
  take_query_tile<kLimbRows>(args);
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t warp = threadIdx.x / 32 - kGroupThreads / 32;
  // The shuffle from lane 0 tells the compiler that a warp has one value, as descriptors need.
  const uint32_t group = __shfl_sync(0xffffffffu, warp / 4, 0);
  const uint64_t columns_at = operand_descriptor(shared + group * (kTensorTileBytes / 2));
  const uint64_t limbs_at = operand_descriptor(shared + kTensorTileBytes);
  while (left > 0) {
    const uint32_t tile = walk.tile();
    int32_t sums[kLimbRows / 2] = {};
    // A stage whose products may still run: it is given back a step later.
    constexpr uint32_t kNone = kStages;
    uint32_t in_use = kNone;
    bool piece_ends;
    do {
      wait_for_phase(full + at.stage, at.parity);
      const uint32_t stage = at.stage * Stages::kStageBytes;
      pin(sums);
      wgmma_fence();
#pragma unroll
      for (uint32_t k = 0; k < kStepRows; k += 32) {
        wgmma_s8_s8_shared<kLimbRows>(sums, descriptor_after(columns_at, stage + k),
                                      descriptor_after(limbs_at, stage + k));
      }
      wgmma_commit();
      wgmma_wait<1>();
      pin(sums);
      if (lane == 0 && in_use != kNone) arrive(empty + in_use);
      in_use = at.stage;
      at.advance();
      piece_ends = walk.advance();
    } while (--left > 0 && !piece_ends);
    wgmma_wait();
    pin(sums);
    if (lane == 0) arrive(empty + in_use);
    WordProducts::add_wgmma<kLimbRows>(sums, args, tile * kTensorTileColumns + warp * kWarpColumns,
                                       kWarpColumns, lane);
  }
}

}  // namespace
}  // namespace blindfuse
