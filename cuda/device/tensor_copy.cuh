// Copies of boxes by the tensor memory accelerator, barriers with phases that say when they are
// there, and registers that warpgroups hand on. Compute capability 9.0 and later, registers with
// 9.0a alone; other code that comes here stops.
//
// PTX ISA: "mbarrier.init", "mbarrier.arrive" with .expect_tx, "mbarrier.try_wait",
// "fence.mbarrier_init", "cp.async.bulk.tensor", "setmaxnreg".
//
// tests/cuda/emulator.h has the same for the CPU, and stands in for this file there.
#ifndef BLINDFUSE_CUDA_TENSOR_COPY_CUH
#define BLINDFUSE_CUDA_TENSOR_COPY_CUH

#include <cuda.h>

#include <cstdint>

namespace blindfuse {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define BLINDFUSE_TENSOR(...) asm volatile(__VA_ARGS__)
#else
#define BLINDFUSE_TENSOR(...) __trap()
#endif
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define BLINDFUSE_REGISTERS(...) asm volatile(__VA_ARGS__)
#else
#define BLINDFUSE_REGISTERS(...) __trap()
#endif

// A kernel has it as a `const __grid_constant__` parameter, where the accelerator reads it.
using TensorMap = CUtensorMap;

__device__ __forceinline__ uint32_t shared_address_of(const void* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

// A barrier is a word in shared memory. It counts arrivals and bytes: a phase is complete when as
// many threads as were said here have arrived, and as many bytes have come as were expected. Then
// the next phase begins. Phases have the numbers 0, 1, 2, ...
__device__ __forceinline__ void init_barrier(uint64_t* barrier, uint32_t arrivals) {
  BLINDFUSE_TENSOR("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address_of(barrier)),
                   "r"(arrivals)
                   : "memory");
}
// Makes barriers that this thread initialized visible to the accelerator and, after the next
// barrier of the block, to all threads.
__device__ __forceinline__ void publish_barriers() {
  BLINDFUSE_TENSOR("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void arrive(uint64_t* barrier) {
  BLINDFUSE_TENSOR("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address_of(barrier))
                   : "memory");
}
// Called before the copies that bring these bytes.
__device__ __forceinline__ void arrive_and_expect(uint64_t* barrier, uint32_t bytes) {
  BLINDFUSE_TENSOR(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address_of(barrier)),
      "r"(bytes)
      : "memory");
}
// Waits until the phase with this parity is complete: the current one, or the one before it, which
// is complete. The phase before phase 0 has parity 1. A thread that has waited sees the bytes that
// were copied in the phase, and so do products that it starts.
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

// Copies the box whose first byte is at (row, column), box after box of the map's shape: all of its
// bytes come to the barrier's current phase, zeros where the matrix has none. `to` is a multiple of
// 128, and with a swizzle of 1024.
__device__ __forceinline__ void copy_box(void* to, const TensorMap* map, uint32_t row,
                                         uint32_t column, uint64_t* barrier) {
  BLINDFUSE_TENSOR(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address_of(to)),
      "l"(map), "r"(row), "r"(column), "r"(shared_address_of(barrier))
      : "memory");
}
// policy: evict_first_policy() (cuda/device/intrinsics.cuh).
__device__ __forceinline__ void copy_box(void* to, const TensorMap* map, uint32_t row,
                                         uint32_t column, uint64_t* barrier, uint64_t policy) {
  BLINDFUSE_TENSOR(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address_of(to)),
      "l"(map), "r"(row), "r"(column), "r"(shared_address_of(barrier)), "l"(policy)
      : "memory");
}

// Gives each thread of this warpgroup this many registers from now on, fewer or more than before.
// All of its warps call it. The kernel has __launch_bounds__. Registers that one warpgroup gives up
// can be taken by another, which waits for them.
template <uint32_t kCount>
__device__ __forceinline__ void give_up_registers() {
  static_assert(kCount >= 24 && kCount <= 256 && kCount % 8 == 0);
  BLINDFUSE_REGISTERS("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}
template <uint32_t kCount>
__device__ __forceinline__ void take_registers() {
  static_assert(kCount >= 24 && kCount <= 256 && kCount % 8 == 0);
  BLINDFUSE_REGISTERS("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}

#undef BLINDFUSE_REGISTERS
#undef BLINDFUSE_TENSOR

}  // namespace blindfuse

#endif
