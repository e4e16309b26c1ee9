// Loads of 16 bytes, this many of a thread in flight.
#pragma once

#include <cstdint>

#include "bench/probes/tile_walk.h"
#include "cuda/device/intrinsics.cuh"

namespace blindfuse::probes {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

constexpr uint32_t kReadThreads = 256;

// words[i] = i * kWordFactor
__global__ void __launch_bounds__(kReadThreads) fill_words(uint32_t* words, uint64_t count) {
  for (uint64_t i = uint64_t{blockIdx.x} * kReadThreads + threadIdx.x; i < count;
       i += uint64_t{gridDim.x} * kReadThreads) {
    words[i] = static_cast<uint32_t>(i) * kWordFactor;
  }
}

__device__ __forceinline__ uint32_t sum_of(const uint4& v) { return v.x + v.y + v.z + v.w; }

// *sum += all words that are read. passes 0: the blocks share the tiles. Otherwise each reads all
// of them so often, and begins with the first or, if they are spread, where its share would begin.
//
// No more than four loads: of eight, ptxas 13.0 waits for the first one before it starts the sixth,
// so as to need fewer registers. Blocks bring more into flight.
template <uint32_t kLoads>
__global__ void __launch_bounds__(kReadThreads)
    read_tiles(TileWalk walk, const uint8_t* bytes, uint32_t passes, bool spread, uint32_t* sum) {
  const bool shares = passes == 0;
  const uint32_t share = first_tile(walk, blockIdx.x, gridDim.x);
  const uint32_t begin = shares || spread ? share : 0;
  const uint32_t tiles =
      shares ? first_tile(walk, blockIdx.x + 1, gridDim.x) - share : passes * walk.tile_count;
  constexpr uint32_t kLoadsATile = kTileChunks / kReadThreads;
  const uint32_t loads = tiles * kLoadsATile;
  // From a thread's chunk of a tile to its next one.
  const uint64_t stride = kReadThreads / kPieceChunks * walk.pitch;
  const uint8_t* const mine_in_tile = bytes + chunk_offset(walk, 0, threadIdx.x);
  TileCursor cursor(walk, begin);
  uint32_t part = 0;  // of the tile
  const auto load = [&] {
    const uint4 v = load_once_16(mine_in_tile + cursor.offset() + part * stride);
    if (++part == kLoadsATile) {
      part = 0;
      cursor.advance();
    }
    return v;
  };
  uint32_t mine = 0, done = 0;
  // Not unrolled: no more loads are in flight than is said.
#pragma unroll 1
  for (; done + kLoads <= loads; done += kLoads) {
    uint4 v[kLoads];
#pragma unroll
    for (uint32_t k = 0; k < kLoads; ++k) v[k] = load();
#pragma unroll
    for (uint32_t k = 0; k < kLoads; ++k) mine += sum_of(v[k]);
  }
#pragma unroll 1
  for (; done < loads; ++done) mine += sum_of(load());
  mine = __reduce_add_sync(0xffffffffu, mine);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, mine);
}

}  // namespace
}  // namespace blindfuse::probes
