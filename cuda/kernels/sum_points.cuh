// The sums over packing tables for all packs and queries, on the tensor cores: mma.sync m16n8k32 of
// unsigned bytes. cuda/kernels/packing_tasks.h has the sums and the orders.
//
// The sixteen products of a table word's limbs with a key word's are added up by what they count
// for, 2^(8 s) with s = 0 .. 6: at most four products of bytes at each of 6141 places, 1.6e9, so
// that sums of 32 bits hold them all, and modulo the packing modulus is taken once at the end.
//
// A block has eight points, a warp each. A table's byte is used by one warp alone and goes from
// memory into its registers, kStepsAhead steps before it is used. Points that lie four apart have
// windows of the keys that lie four bytes apart, so the block shares one window through shared
// memory, kChunkPowers powers at a time, kSumStages chunks in turn. Rows of a window are 44 words
// apart: the eight rows of a fragment, four words each, have no bank in common, whatever place the
// window is read from.
//
// Napkin, on an H200 (132 multiprocessors, 1.75 GHz, 4.8 TB/s: 21 bytes a clock each): the tables'
// 50.3 MB a pack (of whole eights) take 10.5 us. For 1 KB of them, 49 clocks, a tile of 16 queries
// takes 16 instructions of 4096 multiply-adds, 26 clocks at 0.62 of the dense peak (scan_many.cuh):
// memory is the limit up to some 30 queries. Keys come from the second-level cache: for every 1 KB
// of tables 320 bytes a tile of queries, 160 with two tiles of packs. Fragments of keys are 16
// passes of shared memory a tile of queries, for each tile of packs or for two. Unmeasured.
//
// The compiler (CUDA 13) does not keep loads of tables where they stand: nothing in the same chunk
// waits for those of its last steps, so it puts them behind nearly all of the chunk's products.
// With one tile of packs that is all loads, and with two it is half of them: there is then little
// but a barrier, and the other blocks of the multiprocessor, to wait for memory beside.
#pragma once

#include <cstdint>

#include "cuda/kernels/intrinsics.cuh"
#include "cuda/kernels/packing_tasks.h"
#include "src/ring/prime_field.h"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

constexpr uint32_t kSumThreads = 32 * kSetPoints;
constexpr uint32_t kChunkPowers = 128;
constexpr uint32_t kChunkSteps = kChunkPowers / kStepPowers;
constexpr uint32_t kChunks = kSegments * kSegmentPowers / kChunkPowers;
constexpr uint32_t kSumStages = 3;
static_assert(kChunkPowers + 4 * (kSetPoints - 1) <= kWindowBytes, "a window has all points'");

// In shared memory: a window for each limb of each query of a tile.
constexpr uint32_t kWindowPitch = 176;
constexpr uint32_t kWindowWords = kWindowPitch / 4;
constexpr uint32_t kWindowRows = kWordLimbs * kQueriesInTile;
constexpr uint32_t kWindowRowsOfWarp = kWindowRows / kSetPoints;

template <uint32_t kQueryTiles>
constexpr uint32_t sum_stage_bytes() {
  return kQueryTiles * kWindowRows * kWindowPitch;
}
template <uint32_t kQueryTiles>
constexpr uint32_t sum_shared_bytes() {
  return kSumStages * sum_stage_bytes<kQueryTiles>();
}

// Brings the windows of a block's points to shared memory. A warp brings eight rows of each tile of
// queries, by 16 bytes: the first eight pieces of a row by as many lanes, then the last two of four
// rows by eight, which are every other row, so that here, too, no two lanes meet at a bank.
template <uint32_t kQueryTiles>
class KeyWindows {
 public:
  __device__ __forceinline__ KeyWindows(const SumTask& task, uint32_t first_query, uint32_t point,
                                        uint8_t* shared)
      : planes_(task.planes),
        last_query_(task.query_count - 1),
        first_query_(first_query),
        half_(point / kSegmentPowers),
        base_(point % kSegmentPowers / 32 * 32),
        copy_(point % kPlaneCopies),
        shared_(shared) {}

  // Starts to bring a chunk, if there is one; a group in any case, so that groups can be counted.
  __device__ __forceinline__ void fetch(uint32_t chunk, uint32_t stage) const {
    if (chunk < kChunks) {
      const uint32_t lane = threadIdx.x % 32;
      const uint32_t segment = chunk * kChunkPowers / kSegmentPowers;
      const uint32_t begin = (base_ + chunk * kChunkPowers) % kSegmentPowers;
      const uint32_t half = half_ ^ segment_chain(segment);
      const uint32_t place = plane_place(segment_digit(segment), half, 0, copy_) + begin;
      uint8_t* to = shared_ + stage * sum_stage_bytes<kQueryTiles>();
#pragma unroll
      for (uint32_t tile = 0; tile < kQueryTiles; ++tile) {
        copy_piece(tile, lane / 8, lane % 8, place, to);
        copy_piece(tile, lane / 8 + 4, lane % 8, place, to);
        if (lane < 16) copy_piece(tile, lane / 8 + lane % 8 / 2 * 2, 8 + lane % 2, place, to);
      }
    }
    commit_copies();
  }

 private:
  // Row r of the warp's eight.
  __device__ __forceinline__ void copy_piece(uint32_t tile, uint32_t r, uint32_t piece,
                                             uint32_t place, uint8_t* to) const {
    const uint32_t row = threadIdx.x / 32 * kWindowRowsOfWarp + r;
    const uint32_t limb = row / kQueriesInTile;
    // Behind the last query the last one is read again, and not used.
    const uint32_t query =
        min(first_query_ + tile * kQueriesInTile + row % kQueriesInTile, last_query_);
    copy_16_async(to + (tile * kWindowRows + row) * kWindowPitch + piece * 16,
                  planes_ + uint64_t{query} * kQueryPlaneBytes + plane_place(0, 0, limb, 0) +
                      place + piece * 16);
  }

  const uint8_t* planes_;
  uint32_t last_query_;
  uint32_t first_query_;
  uint32_t half_;
  uint32_t base_;
  uint32_t copy_;
  uint8_t* shared_;
};

// What a lane has of a step of a tile of packs.
struct TableStep {
  uint4 halves[2];

  __device__ __forceinline__ void load(const uint8_t* from) {
    halves[0] = load_once_16(from);
    halves[1] = load_once_16(from + kHalfStepBytes);
  }
};

// By what the products count for.
constexpr uint32_t kLimbSums = 2 * kWordLimbs - 1;

// Modulo the packing modulus: four sums of 2^31 at most that count for 2^0, 2^8, 2^16, 2^24, and
// three for 2^32, 2^40, 2^48.
__device__ __forceinline__ uint32_t put_together(const int32_t (&sums)[kLimbSums][4], uint32_t i) {
  constexpr ring::PrimeField kField(ring::kPackingModulus);
  constexpr uint64_t kTwo32 = (uint64_t{1} << 32) - ring::kPackingModulus;
  const auto sum = [&](uint32_t s) { return uint64_t{static_cast<uint32_t>(sums[s][i])}; };
  const uint64_t low = sum(0) + (sum(1) << 8) + (sum(2) << 16) + (sum(3) << 24);
  const uint64_t high = sum(4) + (sum(5) << 8) + (sum(6) << 16);
  return kField.reduce(low + kField.reduce(high) * kTwo32);
}

template <uint32_t kQueryTiles, uint32_t kPackTiles>
struct PointSums {
  int32_t sums[kQueryTiles][kPackTiles][kLimbSums][4];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (uint32_t tile = 0; tile < kQueryTiles; ++tile) {
#pragma unroll
      for (uint32_t n = 0; n < kPackTiles; ++n) {
#pragma unroll
        for (uint32_t i = 0; i < kLimbSums * 4; ++i) sums[tile][n][i / 4][i % 4] = 0;
      }
    }
  }

  // windows: where the lane's word of the point's first power of the step lies, for the first row.
  __device__ __forceinline__ void add(const TableStep (&tables)[kPackTiles],
                                      const uint32_t* windows) {
    constexpr uint32_t kEightRows = 8 * kWindowWords;
#pragma unroll
    for (uint32_t tile = 0; tile < kQueryTiles; ++tile) {
#pragma unroll
      for (uint32_t l = 0; l < kWordLimbs; ++l) {
        const uint32_t* row = windows + (tile * kWindowRows + l * kQueriesInTile) * kWindowWords;
        const uint32_t keys[4] = {load_shared_4(row), load_shared_4(row + kEightRows),
                                  load_shared_4(row + 4), load_shared_4(row + kEightRows + 4)};
#pragma unroll
        for (uint32_t n = 0; n < kPackTiles; ++n) {
          const uint4& low = tables[n].halves[0];
          const uint4& high = tables[n].halves[1];
          const uint32_t limbs[kWordLimbs][2] = {
              {low.x, low.y}, {low.z, low.w}, {high.x, high.y}, {high.z, high.w}};
          mma_u8_u8_four(sums[tile][n] + l, keys, limbs);
        }
      }
    }
  }

  __device__ __forceinline__ void write(const SumTask& task, uint32_t first_query,
                                        uint32_t first_tile, uint32_t point) const {
    const uint32_t lane = threadIdx.x % 32;
#pragma unroll
    for (uint32_t tile = 0; tile < kQueryTiles; ++tile) {
#pragma unroll
      for (uint32_t n = 0; n < kPackTiles; ++n) {
#pragma unroll
        for (uint32_t i = 0; i < 4; ++i) {
          const uint32_t query = first_query + tile * kQueriesInTile + i / 2 * 8 + lane / 4;
          const uint32_t pack = (first_tile + n) * kPacksInTile + lane % 4 * 2 + i % 2;
          if (query < task.query_count && pack < task.pack_count) {
            task.sums[(uint64_t{query} * task.pack_count + pack) * kPoints + point] =
                put_together(sums[tile][n], i);
          }
        }
      }
    }
  }
};

// Blocks of more tiles have a multiprocessor for themselves, or share it with one other.
constexpr uint32_t sum_blocks(uint32_t query_tiles, uint32_t pack_tiles) {
  return query_tiles * pack_tiles == 4 ? 1 : 2;
}

// kQueryTiles tiles of 16 queries, kPackTiles of 8 packs, all of which there are. Grid:
// (kQueryTiles tiles of queries, kPackTiles tiles of packs, sets of points); blocks that read the
// same tables are neighbours.
template <uint32_t kQueryTiles, uint32_t kPackTiles>
__global__ void __launch_bounds__(kSumThreads, sum_blocks(kQueryTiles, kPackTiles))
    sum_points(SumTask task) {
  constexpr uint32_t kStepsAhead = 4 / kPackTiles;
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t warp = threadIdx.x / 32;
  const uint32_t first_query = blockIdx.x * (kQueryTiles * kQueriesInTile);
  const uint32_t first_tile = task.first_tile + blockIdx.y * kPackTiles;
  const uint32_t point = first_point(task.first_set + blockIdx.z) + 4 * warp;
  uint8_t* const shared = dynamic_shared_memory();
  const KeyWindows<kQueryTiles> windows(task, first_query, point, shared);

  const uint8_t* from = task.tables + tile_place(point, first_tile, task.pack_count) + lane * 16;
  TableStep ahead[kStepsAhead][kPackTiles];
  const auto load = [&](TableStep(&step)[kPackTiles]) {
#pragma unroll
    for (uint32_t n = 0; n < kPackTiles; ++n) step[n].load(from + n * kTileBytes);
    from += kStepBytes;
  };

#pragma unroll
  for (uint32_t i = 0; i < kSumStages - 1; ++i) windows.fetch(i, i);
#pragma unroll
  for (uint32_t i = 0; i < kStepsAhead; ++i) load(ahead[i]);
  PointSums<kQueryTiles, kPackTiles> sums;
  sums.clear();
  // Point j of the set is 4 j bytes into the window.
  const uint8_t* mine = shared + (lane / 4) * kWindowPitch + (warp + lane % 4) * 4;
  uint32_t stage = 0;
  for (uint32_t chunk = 0; chunk < kChunks; ++chunk) {
    wait_copies<kSumStages - 2>();
    __syncthreads();  // this chunk's windows are there for all, and all are done with the last's
    windows.fetch(chunk + kSumStages - 1, (stage + kSumStages - 1) % kSumStages);
    const auto* words =
        reinterpret_cast<const uint32_t*>(mine + stage * sum_stage_bytes<kQueryTiles>());
    const bool more = chunk + 1 < kChunks;
#pragma unroll
    for (uint32_t step = 0; step < kChunkSteps; ++step) {
      TableStep(&tables)[kPackTiles] = ahead[step % kStepsAhead];
      sums.add(tables, words + step * (kStepPowers / 4));
      if (more || step + kStepsAhead < kChunkSteps) load(tables);
    }
    stage = stage + 1 == kSumStages ? 0 : stage + 1;
  }
  wait_copies<0>();
  sums.write(task, first_query, first_tile, point);
}

}  // namespace
}  // namespace blindfuse
