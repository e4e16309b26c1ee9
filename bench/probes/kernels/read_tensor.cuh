// Tiles that the tensor memory accelerator brings into shared memory, so many stages of 16 KB in
// flight: one warp asks for them, eight warps read them. Compute capability 9.0 and later; other
// code that comes here stops.
//
// PTX ISA: "cp.async.bulk.tensor", "mbarrier.init", "mbarrier.arrive" with .expect_tx,
// "mbarrier.try_wait", "fence.mbarrier_init".
#pragma once

#include <cuda.h>

#include <cstdint>

#include "bench/probes/tile_walk.h"
#include "cuda/device/intrinsics.cuh"

namespace blindfuse::probes {
namespace {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define BLINDFUSE_TENSOR(...) asm volatile(__VA_ARGS__)
#else
#define BLINDFUSE_TENSOR(...) __trap()
#endif

constexpr uint32_t kTensorReaders = 256;
constexpr uint32_t kTensorThreads = kTensorReaders + 32;
constexpr uint32_t kStagesMax = 13;  // 208 KB

__device__ __forceinline__ uint32_t shared_address_of(const void* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

__device__ __forceinline__ void init_barrier(uint64_t* barrier, uint32_t arrivals) {
  BLINDFUSE_TENSOR("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address_of(barrier)),
                   "r"(arrivals)
                   : "memory");
}
// What was initialized is seen by the accelerator and, after the next barrier of the block, by all.
__device__ __forceinline__ void publish_barriers() {
  BLINDFUSE_TENSOR("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void arrive(uint64_t* barrier) {
  BLINDFUSE_TENSOR("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address_of(barrier))
                   : "memory");
}
__device__ __forceinline__ void arrive_and_expect(uint64_t* barrier, uint32_t bytes) {
  BLINDFUSE_TENSOR(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address_of(barrier)),
      "r"(bytes)
      : "memory");
}
// Until the phase with this parity is complete.
__device__ __forceinline__ void wait_for_phase(uint64_t* barrier, uint32_t parity) {
  uint32_t is_complete = 0;
  do {
    BLINDFUSE_TENSOR(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}"
        : "=r"(is_complete)
        : "r"(shared_address_of(barrier)), "r"(parity)
        : "memory");
  } while (is_complete == 0);
}
__device__ __forceinline__ void copy_tile(void* to, const CUtensorMap* map, TilePlace place,
                                          uint64_t* barrier) {
  BLINDFUSE_TENSOR(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address_of(to)),
      "l"(map), "r"(place.row), "r"(place.column), "r"(shared_address_of(barrier))
      : "memory");
}

#undef BLINDFUSE_TENSOR

// *sum += all words; the blocks share the tiles. map: of the walk's matrix, boxes of a tile.
__global__ void __launch_bounds__(kTensorThreads, 1)
    read_tensor(const __grid_constant__ CUtensorMap map, TileWalk walk, uint32_t stages,
                uint32_t* sum) {
  __shared__ uint64_t full[kStagesMax], empty[kStagesMax];
  uint8_t* const tiles = dynamic_shared_memory();
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
      copy_tile(tiles + stage * kTileBytes, &map, tile_place(walk, begin + i), &full[stage]);
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
