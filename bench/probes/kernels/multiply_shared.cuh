// Hopper's products of a warpgroup alone: both operands in shared memory, nothing else to do. Only
// code for compute capability 9.0a has them; other code that comes here stops.
//
// PTX ISA, "wgmma.mma_async": m64nNk32 of signed bytes, A and B by descriptors.
#pragma once

#include <cstdint>

#include "bench/probes/shared_product.h"
#include "cuda/device/intrinsics.cuh"
#include "cuda/scan/kernels/wgmma.cuh"

namespace blindfuse::probes {
namespace {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define BLINDFUSE_PRODUCT(...) asm volatile(__VA_ARGS__)
#else
#define BLINDFUSE_PRODUCT(...) __trap()
#endif

// Eight registers and what they are called; 16, 32 and 64 of them.
#define BLINDFUSE_NAMES_0 "%0, %1, %2, %3, %4, %5, %6, %7"
#define BLINDFUSE_NAMES_8 "%8, %9, %10, %11, %12, %13, %14, %15"
#define BLINDFUSE_NAMES_16 "%16, %17, %18, %19, %20, %21, %22, %23"
#define BLINDFUSE_NAMES_24 "%24, %25, %26, %27, %28, %29, %30, %31"
#define BLINDFUSE_NAMES_32 "%32, %33, %34, %35, %36, %37, %38, %39"
#define BLINDFUSE_NAMES_40 "%40, %41, %42, %43, %44, %45, %46, %47"
#define BLINDFUSE_NAMES_48 "%48, %49, %50, %51, %52, %53, %54, %55"
#define BLINDFUSE_NAMES_56 "%56, %57, %58, %59, %60, %61, %62, %63"
#define BLINDFUSE_NAMES_64 "%64, %65, %66, %67, %68, %69, %70, %71"
#define BLINDFUSE_NAMES_72 "%72, %73, %74, %75, %76, %77, %78, %79"
#define BLINDFUSE_NAMES_80 "%80, %81, %82, %83, %84, %85, %86, %87"
#define BLINDFUSE_NAMES_88 "%88, %89, %90, %91, %92, %93, %94, %95"
#define BLINDFUSE_NAMES_96 "%96, %97, %98, %99, %100, %101, %102, %103"
#define BLINDFUSE_NAMES_104 "%104, %105, %106, %107, %108, %109, %110, %111"
#define BLINDFUSE_NAMES_112 "%112, %113, %114, %115, %116, %117, %118, %119"
#define BLINDFUSE_NAMES_120 "%120, %121, %122, %123, %124, %125, %126, %127"
#define BLINDFUSE_SUMS_8(i)                                                                  \
  "+r"(sums[i]), "+r"(sums[i + 1]), "+r"(sums[i + 2]), "+r"(sums[i + 3]), "+r"(sums[i + 4]), \
      "+r"(sums[i + 5]), "+r"(sums[i + 6]), "+r"(sums[i + 7])
#define BLINDFUSE_SUMS_16(i) BLINDFUSE_SUMS_8(i), BLINDFUSE_SUMS_8(i + 8)
#define BLINDFUSE_SUMS_32(i) BLINDFUSE_SUMS_16(i), BLINDFUSE_SUMS_16(i + 16)
#define BLINDFUSE_SUMS_64(i) BLINDFUSE_SUMS_32(i), BLINDFUSE_SUMS_32(i + 32)

// sums += a * b for 64 x 32 signed bytes times 32 x kColumns. Wraps.
template <int kColumns>
__device__ __forceinline__ void multiply_shared_bytes(int32_t (&sums)[kColumns / 2], uint64_t a,
                                                      uint64_t b);

template <>
__device__ __forceinline__ void multiply_shared_bytes<16>(int32_t (&sums)[8], uint64_t a,
                                                          uint64_t b) {
  BLINDFUSE_PRODUCT("wgmma.mma_async.sync.aligned.m64n16k32.s32.s8.s8 {" BLINDFUSE_NAMES_0
                    "}, %8, %9, 1;"
                    : BLINDFUSE_SUMS_8(0)
                    : "l"(a), "l"(b));
}

template <>
__device__ __forceinline__ void multiply_shared_bytes<32>(int32_t (&sums)[16], uint64_t a,
                                                          uint64_t b) {
  BLINDFUSE_PRODUCT("wgmma.mma_async.sync.aligned.m64n32k32.s32.s8.s8 {" BLINDFUSE_NAMES_0
                    ", " BLINDFUSE_NAMES_8 "}, %16, %17, 1;"
                    : BLINDFUSE_SUMS_16(0)
                    : "l"(a), "l"(b));
}

template <>
__device__ __forceinline__ void multiply_shared_bytes<64>(int32_t (&sums)[32], uint64_t a,
                                                          uint64_t b) {
  BLINDFUSE_PRODUCT("wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 {" BLINDFUSE_NAMES_0
                    ", " BLINDFUSE_NAMES_8 ", " BLINDFUSE_NAMES_16 ", " BLINDFUSE_NAMES_24
                    "}, %32, %33, 1;"
                    : BLINDFUSE_SUMS_32(0)
                    : "l"(a), "l"(b));
}

template <>
__device__ __forceinline__ void multiply_shared_bytes<96>(int32_t (&sums)[48], uint64_t a,
                                                          uint64_t b) {
  BLINDFUSE_PRODUCT("wgmma.mma_async.sync.aligned.m64n96k32.s32.s8.s8 {" BLINDFUSE_NAMES_0
                    ", " BLINDFUSE_NAMES_8 ", " BLINDFUSE_NAMES_16 ", " BLINDFUSE_NAMES_24
                    ", " BLINDFUSE_NAMES_32 ", " BLINDFUSE_NAMES_40 "}, %48, %49, 1;"
                    : BLINDFUSE_SUMS_32(0), BLINDFUSE_SUMS_16(32)
                    : "l"(a), "l"(b));
}

template <>
__device__ __forceinline__ void multiply_shared_bytes<128>(int32_t (&sums)[64], uint64_t a,
                                                           uint64_t b) {
  BLINDFUSE_PRODUCT("wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 {" BLINDFUSE_NAMES_0
                    ", " BLINDFUSE_NAMES_8 ", " BLINDFUSE_NAMES_16 ", " BLINDFUSE_NAMES_24
                    ", " BLINDFUSE_NAMES_32 ", " BLINDFUSE_NAMES_40 ", " BLINDFUSE_NAMES_48
                    ", " BLINDFUSE_NAMES_56 "}, %64, %65, 1;"
                    : BLINDFUSE_SUMS_64(0)
                    : "l"(a), "l"(b));
}

template <>
__device__ __forceinline__ void multiply_shared_bytes<192>(int32_t (&sums)[96], uint64_t a,
                                                           uint64_t b) {
  BLINDFUSE_PRODUCT("wgmma.mma_async.sync.aligned.m64n192k32.s32.s8.s8 {" BLINDFUSE_NAMES_0
                    ", " BLINDFUSE_NAMES_8 ", " BLINDFUSE_NAMES_16 ", " BLINDFUSE_NAMES_24
                    ", " BLINDFUSE_NAMES_32 ", " BLINDFUSE_NAMES_40 ", " BLINDFUSE_NAMES_48
                    ", " BLINDFUSE_NAMES_56 ", " BLINDFUSE_NAMES_64 ", " BLINDFUSE_NAMES_72
                    ", " BLINDFUSE_NAMES_80 ", " BLINDFUSE_NAMES_88 "}, %96, %97, 1;"
                    : BLINDFUSE_SUMS_64(0), BLINDFUSE_SUMS_32(64)
                    : "l"(a), "l"(b));
}

template <>
__device__ __forceinline__ void multiply_shared_bytes<256>(int32_t (&sums)[128], uint64_t a,
                                                           uint64_t b) {
  BLINDFUSE_PRODUCT("wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8 {" BLINDFUSE_NAMES_0
                    ", " BLINDFUSE_NAMES_8 ", " BLINDFUSE_NAMES_16 ", " BLINDFUSE_NAMES_24
                    ", " BLINDFUSE_NAMES_32 ", " BLINDFUSE_NAMES_40 ", " BLINDFUSE_NAMES_48
                    ", " BLINDFUSE_NAMES_56 ", " BLINDFUSE_NAMES_64 ", " BLINDFUSE_NAMES_72
                    ", " BLINDFUSE_NAMES_80 ", " BLINDFUSE_NAMES_88 ", " BLINDFUSE_NAMES_96
                    ", " BLINDFUSE_NAMES_104 ", " BLINDFUSE_NAMES_112 ", " BLINDFUSE_NAMES_120
                    "}, %128, %129, 1;"
                    : BLINDFUSE_SUMS_64(0), BLINDFUSE_SUMS_64(64)
                    : "l"(a), "l"(b));
}

#undef BLINDFUSE_SUMS_64
#undef BLINDFUSE_SUMS_32
#undef BLINDFUSE_SUMS_16
#undef BLINDFUSE_SUMS_8
#undef BLINDFUSE_NAMES_0
#undef BLINDFUSE_NAMES_8
#undef BLINDFUSE_NAMES_16
#undef BLINDFUSE_NAMES_24
#undef BLINDFUSE_NAMES_32
#undef BLINDFUSE_NAMES_40
#undef BLINDFUSE_NAMES_48
#undef BLINDFUSE_NAMES_56
#undef BLINDFUSE_NAMES_64
#undef BLINDFUSE_NAMES_72
#undef BLINDFUSE_NAMES_80
#undef BLINDFUSE_NAMES_88
#undef BLINDFUSE_NAMES_96
#undef BLINDFUSE_NAMES_104
#undef BLINDFUSE_NAMES_112
#undef BLINDFUSE_NAMES_120
#undef BLINDFUSE_PRODUCT

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
        multiply_shared_bytes<kColumns>(sums, limb_descriptor(rows + group * 64 * kRowBytes + byte),
                                        limb_descriptor(rows + kRowsOfA * kRowBytes + byte));
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
