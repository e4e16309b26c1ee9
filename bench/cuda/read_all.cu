// Napkin: 4.8 TB/s that take 1 us to come are 4.8 MB on their way, 36 KB for each of 132
// multiprocessors, of which each runs 2048 threads: 18 bytes a thread. Two loads of 16 bytes at a
// time would do; up to eight are asked for.
#include <algorithm>

#include "bench/cuda/stopwatch.h"
#include "cuda/device/check.h"
#include "cuda/device/intrinsics.cuh"
#include "cuda/device/launch.cuh"

namespace blindfuse::bench {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kAhead = 8;
constexpr uint64_t kTile = uint64_t{kThreads} * kAhead;  // times 16 bytes, one after another

__device__ __forceinline__ uint32_t folded_word(const uint4& v) { return v.x ^ v.y ^ v.z ^ v.w; }

// `count` times 16 bytes; a block reads tile after tile.
__global__ void __launch_bounds__(kThreads)
    read_all(const uint4* chunks, uint64_t count, uint32_t* folded) {
  uint32_t fold = 0;
  for (uint64_t tile = blockIdx.x * kTile; tile < count; tile += gridDim.x * kTile) {
    const uint64_t first = tile + threadIdx.x;
    if (tile + kTile <= count) {
      uint4 v[kAhead];
#pragma unroll
      for (uint32_t k = 0; k < kAhead; ++k) v[k] = load_once_16(chunks + first + k * kThreads);
#pragma unroll
      for (uint32_t k = 0; k < kAhead; ++k) fold ^= folded_word(v[k]);
    } else {
      for (uint64_t i = first; i < count; i += kThreads)
        fold ^= folded_word(load_once_16(chunks + i));
    }
  }
  fold = __reduce_xor_sync(0xffffffffu, fold);
  if (threadIdx.x % 32 == 0) atomicXor(folded, fold);
}

}  // namespace

void start_read_all(const void* bytes, uint64_t byte_count, uint32_t* folded, cudaStream_t stream) {
  int device = 0, processors = 0, blocks_a_processor = 0;
  BLINDFUSE_CUDA(cudaGetDevice(&device));
  BLINDFUSE_CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  BLINDFUSE_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &blocks_a_processor, reinterpret_cast<const void*>(read_all), kThreads, 0));
  const auto blocks = static_cast<uint32_t>(processors * std::max(1, blocks_a_processor));
  launch_kernel("read_all", read_all, dim3(blocks), kThreads, 0, stream,
                static_cast<const uint4*>(bytes), byte_count / 16, folded);
}

}  // namespace blindfuse::bench
