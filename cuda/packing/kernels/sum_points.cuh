// The sums over packing tables for all packs and queries, on the tensor cores: mma.sync m16n8k32 of
// unsigned bytes. cuda/packing/kernels/packing_args.h has the sums and the orders.
//
// The sixteen products of a table word's limbs with a key word's are added up by what they count
// for, 2^(8 s) with s = 0 .. 6: at most four products of bytes at each of 3069 places, 8.0e8, so
// that sums of 32 bits hold them all, and modulo the packing modulus is taken once at the end.
//
// A block has eight points, a warp each. Points that lie four apart have windows of the keys that
// lie four bytes apart, so the block shares one window through shared memory, kChunkPowers powers
// at a time, kSumStages chunks in turn. Rows of a window are 44 words apart: the eight rows of a
// fragment, four words each, have no bank in common, whatever place the window is read from.
//
// A table's byte is used by one lane alone. It, too, goes through shared memory, by asynchronous
// copies, which stay where they are issued: the compiler moves loads to registers after a chunk's
// products. A lane takes from its queue only what it has put there itself, kStepsAhead steps ago,
// and needs no barrier for that.
//
// Napkin, on an H200 (132 multiprocessors, 1.75 GHz, 4.8 TB/s: 21 bytes a clock each): the tables'
// 25.2 MB a pack (of whole eights) take 5.2 us. For 1 KB of them, 49 clocks, a tile of 16 queries
// takes 16 instructions of 4096 multiply-adds, 26 clocks at 0.62 of the dense peak (scan_mma.cuh):
// memory is the limit up to some 30 queries. Keys come from the second-level cache: for every 1 KB
// of tables 320 bytes a tile of queries, 160 with two tiles of packs. Of shared memory 1 KB of
// tables takes 8 passes to get there and 8 to be read, and fragments of keys 16 a tile of queries,
// for each tile of packs or for two: 48 at most. On their way are 24 or 32 KB a block: the latency
// of memory may be some 1100 or 1500 clocks with one block alone, and twice that with two.
// Unmeasured.
#pragma once

#include <cstdint>

#include "cuda/device/intrinsics.cuh"
#include "cuda/packing/kernels/packing_args.h"
#include "src/arithmetic/ring/prime_field.h"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

constexpr uint32_t kSumThreads = 32 * kSetPoints;
constexpr uint32_t kChunkPowers = 128;
constexpr uint32_t kChunkSteps = kChunkPowers / kStepPowers;
constexpr uint32_t kChunks = kSegments * kSegmentPowers / kChunkPowers;
constexpr uint32_t kSumStages = 2;
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

// The tables of a step, and how many steps of them are on their way.
template <uint32_t kPackTiles>
constexpr uint32_t queue_step_bytes() {
  return kSetPoints * kPackTiles * kStepBytes;
}
template <uint32_t kPackTiles>
constexpr uint32_t kStepsAhead = kPackTiles == 1 ? 3 : 2;

// Blocks of more tiles have a multiprocessor for themselves, or share it with one other.
constexpr uint32_t sum_blocks(uint32_t query_tiles, uint32_t pack_tiles) {
  return query_tiles * pack_tiles == 4 ? 1 : 2;
}

// In KB, for tiles of queries x of packs: 1 x 1 46, 1 x 2 54, 2 x 1 68, 2 x 2 76; CUDA takes 1 more
// for every block. sm_80 has 164, sm_90 228: as many blocks as sum_blocks() says. sm_89 has 100:
// two blocks of 1 x 1, which a fourth step would not leave room for, and one of the others. (1 x 2
// would have two with a single step ahead, and then no more bytes on their way.)
template <uint32_t kQueryTiles, uint32_t kPackTiles>
constexpr uint32_t sum_shared_bytes() {
  constexpr uint32_t kBytes = kSumStages * sum_stage_bytes<kQueryTiles>() +
                              kStepsAhead<kPackTiles> * queue_step_bytes<kPackTiles>();
  static_assert(kBytes <= 99 << 10, "a block of sm_89");
  static_assert(sum_blocks(kQueryTiles, kPackTiles) * (kBytes + 1024) <= 164 << 10, "sm_80");
  return kBytes;
}

// Brings the windows of a block's points to shared memory. A warp brings eight rows of each tile of
// queries, by 16 bytes: the first eight pieces of a row by as many lanes, then the last two of four
// rows by eight, which are every other row, so that here, too, no two lanes meet at a bank.
template <uint32_t kQueryTiles>
class KeyWindows {
 public:
  __device__ __forceinline__ KeyWindows(const SumArgs& args, uint32_t first_query, uint32_t point,
                                        uint8_t* shared)
      : planes_(args.planes),
        last_query_(args.query_count - 1),
        first_query_(first_query),
        half_(point / kSegmentPowers),
        base_(point % kSegmentPowers / 32 * 32),
        copy_(point % kPlaneCopies),
        shared_(shared) {}

  // Starts to bring a chunk, if there is one.
  __device__ __forceinline__ void fetch(uint32_t chunk, uint32_t stage) const {
    if (chunk >= kChunks) return;
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t digit = chunk * kChunkPowers / kSegmentPowers;
    const uint32_t begin = (base_ + chunk * kChunkPowers) % kSegmentPowers;
    const uint32_t place = plane_place(digit, half_, 0, copy_) + begin;
    uint8_t* to = shared_ + stage * sum_stage_bytes<kQueryTiles>();
#pragma unroll
    for (uint32_t tile = 0; tile < kQueryTiles; ++tile) {
      copy_piece(tile, lane / 8, lane % 8, place, to);
      copy_piece(tile, lane / 8 + 4, lane % 8, place, to);
      if (lane < 16) copy_piece(tile, lane / 8 + lane % 8 / 2 * 2, 8 + lane % 2, place, to);
    }
  }

 private:
  // Row r of the warp's eight.
  __device__ __forceinline__ void copy_piece(uint32_t tile, uint32_t r, uint32_t piece,
                                             uint32_t place, uint8_t* to) const {
    const uint32_t row = threadIdx.x / 32 * kWindowRowsOfWarp + r;
    const uint32_t limb = row / kQueriesInTile;
    // After the last query, the last one is read again, and not used.
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
};

// The tables of a lane on their way through shared memory: kStepsAhead slots, in turn. Of a slot,
// each half step of each tile of packs is 16 bytes for every thread, side by side.
//
// A slot that has been taken can be filled again at once. A thread's own accesses to a place are in
// program order, and a copy does not begin before it is issued; the compiler moves no load over the
// copy's asm, which says that it writes memory. The PTX ISA does not promise in words that a load
// comes before a copy that its thread issues later. CUDA's guide has a copy initiated by a thread
// and executed as if by another one: we read this so that it begins after all that its thread did
// before. tests/cuda/races counts that as order, for that thread alone.
template <uint32_t kPackTiles>
class TableQueue {
 public:
  // tables: what the lane has of the first step of the first tile.
  __device__ __forceinline__ TableQueue(const uint8_t* tables, uint8_t* shared)
      : from_(tables), mine_(shared + threadIdx.x * 16) {}

  // Starts to bring the next step into the slot that was taken last, or the first ones in turn.
  __device__ __forceinline__ void fetch(uint32_t slot) {
    uint8_t* to = mine_ + slot * queue_step_bytes<kPackTiles>();
#pragma unroll
    for (uint32_t i = 0; i < 2 * kPackTiles; ++i) {
      copy_16_async(to + i * kRowBytes, from_ + i / 2 * kTileBytes + i % 2 * kHalfStepBytes);
    }
    from_ += kStepBytes;
  }

  __device__ __forceinline__ void take(uint32_t slot, TableStep (&tables)[kPackTiles]) const {
    const uint8_t* at = mine_ + slot * queue_step_bytes<kPackTiles>();
#pragma unroll
    for (uint32_t i = 0; i < 2 * kPackTiles; ++i) {
      tables[i / 2].halves[i % 2] = load_shared_16(at + i * kRowBytes);
    }
  }

 private:
  static constexpr uint32_t kRowBytes = kSumThreads * 16;
  static_assert(2 * kPackTiles * kRowBytes == queue_step_bytes<kPackTiles>());

  const uint8_t* from_;
  uint8_t* mine_;
};

// By what the products count for.
constexpr uint32_t kLimbSums = 2 * kWordLimbs - 1;

// Modulo the packing modulus: four sums of 2^30 at most that count for 2^0, 2^8, 2^16, 2^24, and
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

  __device__ __forceinline__ void write(const SumArgs& args, uint32_t first_query,
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
          if (query < args.query_count && pack < args.pack_count) {
            args.sums[(uint64_t{query} * args.pack_count + pack) * kRingWords + point] =
                put_together(sums[tile][n], i);
          }
        }
      }
    }
  }
};

// kQueryTiles tiles of 16 queries, kPackTiles of 8 packs, all of which there are. Grid:
// (kQueryTiles tiles of queries, kPackTiles tiles of packs, sets of points); blocks that read the
// same tables are neighbours.
//
// Groups of copies, from 0 on: group g has the tables of step g. The first kAhead are committed
// before the first step, group s + kAhead in step s. So kAhead + s groups are there to wait for
// before step s, and all except the last kAhead - 1 are those up to s. The windows of the first
// chunk are in group 0, and those of chunk c + 1 in the first group of chunk c, which is number
// kAhead + c * kChunkSteps: no more than (c + 1) * kChunkSteps, that of the step they are for. What
// is not waited for in the end are groups with nothing in them.
template <uint32_t kQueryTiles, uint32_t kPackTiles>
__global__ void __launch_bounds__(kSumThreads, sum_blocks(kQueryTiles, kPackTiles))
    sum_points(SumArgs args) {
  constexpr uint32_t kAhead = kStepsAhead<kPackTiles>;
  static_assert(kAhead <= kChunkSteps, "windows are waited for with their first step's tables");
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t warp = threadIdx.x / 32;
  const uint32_t first_query = blockIdx.x * (kQueryTiles * kQueriesInTile);
  const uint32_t first_tile = args.first_tile + blockIdx.y * kPackTiles;
  const uint32_t point = first_point(args.first_set + blockIdx.z) + 4 * warp;
  uint8_t* const shared = dynamic_shared_memory();
  const KeyWindows<kQueryTiles> windows(args, first_query, point, shared);
  TableQueue<kPackTiles> queue(
      args.tables + tile_place(point, first_tile, args.pack_count) + lane * 16,
      shared + kSumStages * sum_stage_bytes<kQueryTiles>());

  windows.fetch(0, 0);
#pragma unroll
  for (uint32_t i = 0; i < kAhead; ++i) {
    queue.fetch(i);
    commit_copies();
  }
  PointSums<kQueryTiles, kPackTiles> sums;
  sums.clear();
  // Point j of the set is 4 j bytes into the window.
  const uint8_t* mine = shared + (lane / 4) * kWindowPitch + (warp + lane % 4) * 4;
  uint32_t slot = 0;
  for (uint32_t chunk = 0; chunk < kChunks; ++chunk) {
    const uint32_t stage = chunk % kSumStages;
    const auto* words =
        reinterpret_cast<const uint32_t*>(mine + stage * sum_stage_bytes<kQueryTiles>());
    const bool more = chunk + 1 < kChunks;
#pragma unroll
    for (uint32_t step = 0; step < kChunkSteps; ++step) {
      wait_copies<kAhead - 1>();
      // This chunk's windows are there for all, and all are done with the last's.
      if (step == 0) __syncthreads();
      TableStep tables[kPackTiles];
      queue.take(slot, tables);
      if (more || step + kAhead < kChunkSteps) queue.fetch(slot);
      if (step == 0) windows.fetch(chunk + 1, (chunk + 1) % kSumStages);
      commit_copies();
      sums.add(tables, words + step * (kStepPowers / 4));
      slot = slot + 1 == kAhead ? 0 : slot + 1;
    }
  }
  sums.write(args, first_query, first_tile, point);
}

}  // namespace
}  // namespace blindfuse
