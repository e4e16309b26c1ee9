// Hopper's products of a warpgroup alone: both operands in shared memory, nothing else to do. Only
// code for compute capability 9.0a has them; other code that comes here stops.
//
// PTX ISA, "wgmma.mma_async": m64nNk32 of signed bytes, A and B by descriptors.
#pragma once

#include <cstdint>

#include "bench/probes/shared_product.h"
#include "cuda/device/intrinsics.cuh"
#include "cuda/scan/kernels/wgmma.cuh"
#include "cuda/scan/kernels/wgmma_shared.cuh"

namespace blindfuse::probes {
namespace {

__device__ __forceinline__ uint64_t nanoseconds() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// hashes[block] += expected_hash() for each round. clock: the multiprocessor's clocks that block 0
// took for them, and nanoseconds.
template <int kColumns>
__global__ void __launch_bounds__(kProductThreads, 1)
    multiply_rounds(uint32_t rounds, uint32_t* hashes, uint64_t* clock) {
  uint8_t* const shared = dynamic_shared_memory();
  constexpr uint32_t kSetRows = kRowsOfA + kColumns;
  for (uint32_t i = threadIdx.x; i < kProductSets * kSetRows * kRowWords; i += kProductThreads) {
    const uint32_t word = i % kRowWords, row = i / kRowWords % kSetRows;
    const uint32_t set = i / kRowWords / kSetRows;
    *reinterpret_cast<uint32_t*>(shared + set * set_bytes(kColumns) + word_offset(row, word)) =
        random_word(set, row, word);
  }
  publish_shared();
  __syncthreads();
  const uint32_t group = threadIdx.x / 128;
  const uint64_t began = nanoseconds();
  const auto first_clock = static_cast<uint64_t>(clock64());
  int32_t sums[kColumns / 2] = {};
  for (uint32_t round = 0; round < rounds; ++round) {
    pin(sums);
    wgmma_fence();
#pragma unroll
    for (uint32_t set = 0; set < kProductSets; ++set) {
      const uint8_t* const rows = shared + set * set_bytes(kColumns);
#pragma unroll
      for (uint32_t byte = 0; byte < kRowBytes; byte += 32) {
        wgmma_s8_s8_shared<kColumns>(sums, operand_descriptor(rows + group * 64 * kRowBytes + byte),
                                     operand_descriptor(rows + kRowsOfA * kRowBytes + byte));
      }
    }
    wgmma_commit();
    wgmma_wait();
    pin(sums);
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    clock[0] = static_cast<uint64_t>(clock64()) - first_clock;
    clock[1] = nanoseconds() - began;
  }
  uint32_t hash = 0;
#pragma unroll
  for (uint32_t i = 0; i < kColumns / 2; ++i) {
    hash += sum_weight(sum_place(threadIdx.x, i), kColumns) * static_cast<uint32_t>(sums[i]);
  }
  hash = __reduce_add_sync(0xffffffffu, hash);
  if (threadIdx.x % 32 == 0) atomicAdd(hashes + blockIdx.x, hash);
}

}  // namespace
}  // namespace blindfuse::probes
