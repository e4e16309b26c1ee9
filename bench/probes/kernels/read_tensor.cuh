// Tiles that the tensor memory accelerator brings into shared memory, this many stages of 16 KB in
// flight: one warp asks for them, eight warps read them. Compute capability 9.0 and later; other
// code that comes here stops.
#pragma once

#include <cstdint>

#include "bench/probes/tile_walk.h"
#include "cuda/device/intrinsics.cuh"
#include "cuda/device/tensor_copy.cuh"

namespace blindfuse::probes {
namespace {

constexpr uint32_t kTensorReaders = 256;
constexpr uint32_t kTensorThreads = kTensorReaders + 32;
constexpr uint32_t kStagesMax = 13;  // 208 KB

// The tiles, and after them two barriers for each. The barriers are not static variables: those
// come before dynamic shared memory, and tiles that are copied have to begin at multiples of 128,
// which CUDA does not promise then.
constexpr uint32_t tensor_shared_bytes(uint32_t stages) {
  return stages * (kTileBytes + 2 * static_cast<uint32_t>(sizeof(uint64_t)));
}
static_assert(tensor_shared_bytes(kStagesMax) <= 227 << 10, "a block has so much shared memory");

// *sum += all words; the blocks share the tiles. map: of the walk's matrix, boxes of a tile. With
// tensor_shared_bytes(stages) of shared memory.
__global__ void __launch_bounds__(kTensorThreads, 1)
    read_tensor(const __grid_constant__ TensorMap map, TileWalk walk, uint32_t stages,
                uint32_t* sum) {
  uint8_t* const tiles = dynamic_shared_memory();
  auto* const full = reinterpret_cast<uint64_t*>(tiles + stages * kTileBytes);
  uint64_t* const empty = full + stages;
  const uint32_t begin = first_tile(walk, blockIdx.x, gridDim.x);
  const uint32_t count = first_tile(walk, blockIdx.x + 1, gridDim.x) - begin;
  if (threadIdx.x == 0) {
    for (uint32_t stage = 0; stage < stages; ++stage) {
      init_barrier(&full[stage], 1);
      init_barrier(&empty[stage], kTensorReaders);
    }
    publish_barriers();
  }
  __syncthreads();
  uint32_t stage = 0, parity = 0;
  const auto advance = [&] {
    if (++stage < stages) return;
    stage = 0;
    parity ^= 1;
  };
  if (threadIdx.x >= kTensorReaders) {
    if (threadIdx.x > kTensorReaders) return;
    for (uint32_t i = 0; i < count; ++i, advance()) {
      // In the first round all stages are free.
      if (i >= stages) wait_for_phase(&empty[stage], parity ^ 1);
      arrive_and_expect(&full[stage], kTileBytes);
      const TilePlace place = tile_place(walk, begin + i);
      copy_box(tiles + stage * kTileBytes, &map, place.row, place.column, &full[stage]);
    }
    return;
  }
  uint32_t mine = 0;
  for (uint32_t i = 0; i < count; ++i, advance()) {
    wait_for_phase(&full[stage], parity);
    const uint8_t* const tile = tiles + stage * kTileBytes;
#pragma unroll
    for (uint32_t chunk = 0; chunk < kTileChunks; chunk += kTensorReaders) {
      const uint4 v = load_shared_16(tile + (chunk + threadIdx.x) * kChunkBytes);
      mine += v.x + v.y + v.z + v.w;
    }
    arrive(&empty[stage]);
  }
  mine = __reduce_add_sync(0xffffffffu, mine);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, mine);
}

}  // namespace
}  // namespace blindfuse::probes
