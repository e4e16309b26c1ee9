// The instructions that CUDA C++ has no functions for, or whose exact form matters.
//
// tests/cuda/emulator.h has the same for the CPU, and stands in for this file there.
#ifndef BLINDFUSE_CUDA_INTRINSICS_CUH
#define BLINDFUSE_CUDA_INTRINSICS_CUH

#include <cstdint>

namespace blindfuse {

// The block's dynamic shared memory, aligned to 1024 bytes.
__device__ __forceinline__ uint8_t* dynamic_shared_memory() {
  extern __shared__ __align__(1024) uint8_t memory[];
  return memory;
}

// Copies sixteen bytes into shared memory, past the registers and the nearest cache; both addresses
// are 16-byte aligned. The bytes are there after wait_copies() and a barrier.
__device__ __forceinline__ void copy_16_async(void* shared, const void* global) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(global) : "memory");
}
__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Waits until all of this thread's groups are there, except the last kPending ones.
template <int kPending>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

__device__ __forceinline__ uint4 load_shared_16(const void* shared) {
  return *static_cast<const uint4*>(shared);
}

// Loads sixteen bytes that are read once and need not stay in the nearest cache.
__device__ __forceinline__ uint4 load_once_16(const void* global) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(global));
  return v;
}

// The policy tells the second-level cache, with a load, to evict these lines before any others.
__device__ __forceinline__ uint64_t evict_first_policy() {
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
__device__ __forceinline__ uint4 load_once_16(const void* global, uint64_t policy) {
  uint4 v;
  asm volatile(
      "ld.global.nc.L1::no_allocate.L2::cache_hint.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
      : "l"(global), "l"(policy));
  return v;
}

// sums += a * b for 16 x 32 signed bytes times 32 x 8, the fragments as the PTX ISA lays them out
// over a warp for m16n8k32. Without .satfinite: sums wrap.
__device__ __forceinline__ void mma_s8_s8(int32_t (&sums)[4], const uint32_t (&a)[4],
                                          const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Computes four of these with the same a. The emulator does them together, which takes it half the
// time.
__device__ __forceinline__ void mma_s8_s8_four(int32_t (*sums)[4], const uint32_t (&a)[4],
                                               const uint32_t (&b)[4][2]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) mma_s8_s8(sums[i], a, b[i]);
}

// sum + four signed bytes times four signed bytes.
__device__ __forceinline__ int32_t dot4_s8_s8(uint32_t a, uint32_t b, int32_t sum) {
  int32_t result;
  asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
  return result;
}

}  // namespace blindfuse

#endif
