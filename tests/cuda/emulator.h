// What CUDA kernels call, for the processor (machine.h runs them). Include it before a kernel's
// file: it gives the parts of CUDA's language that the kernels use, and takes the place of
// cuda/device/intrinsics.cuh and of the other files with instructions. Then call
// emulator::launch().
//
// An instruction that is not here is not known, and a kernel with it does not compile.
#pragma once

// The include guards of the files whose place it takes, which are empty from here on.
#define BLINDFUSE_CUDA_INTRINSICS_CUH
#define BLINDFUSE_CUDA_TENSOR_COPY_CUH
#define BLINDFUSE_CUDA_WGMMA_CUH
#define BLINDFUSE_CUDA_WGMMA_SHARED_CUH

#include <bit>
#include <cstdint>
#include <tuple>

#include "cuda/scan/kernels/wgmma_descriptor.h"
#include "tests/cuda/machine.h"

namespace blindfuse {

// The block's, 1024-byte aligned, and full of 0xcd when the block begins.
inline uint8_t* dynamic_shared_memory() { return emulator::runtime::shared_memory(); }

// cp.async.cg.shared.global. It takes place when wait_copies() demands it.
inline void copy_16_async(void* shared, const void* global) {
  emulator::runtime::copy_16(shared, global);
}
inline void commit_copies(BLINDFUSE_SITE) { emulator::runtime::commit_copies(site); }
template <int kPending>
void wait_copies(BLINDFUSE_SITE) {
  emulator::runtime::wait_copies(kPending, site);
}

// Static, as files that are compiled otherwise have another one, whose access is not watched.
static inline uint4 load_shared_16(const void* shared) {
  emulator::runtime::count_load(shared);
  return *static_cast<const uint4*>(shared);
}
static inline uint4 load_once_16(const void* global) {
  emulator::runtime::require_place(global, "load_once_16");
  return *static_cast<const uint4*>(global);
}
inline uint64_t evict_first_policy() { return emulator::runtime::policy(); }
static inline uint4 load_once_16(const void* global, uint64_t policy) {
  emulator::runtime::require_policy(policy, "load_once_16");
  return load_once_16(global);
}

// mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32, onto `sums`, modulo 2^32; and four of them
inline void mma_s8_s8(int32_t (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                      BLINDFUSE_SITE) {
  emulator::runtime::multiply(&sums, a, &b, 1, site);
}
inline void mma_s8_s8_four(int32_t (*sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[4][2],
                           BLINDFUSE_SITE) {
  emulator::runtime::multiply(sums, a, b, 4, site);
}
// dp4a.s32.s32, modulo 2^32
inline int32_t dot4_s8_s8(uint32_t a, uint32_t b, int32_t sum) {
  int32_t product = 0;
  for (unsigned i = 0; i < 32; i += 8) {
    product += static_cast<int8_t>(a >> i) * static_cast<int8_t>(b >> i);
  }
  return static_cast<int32_t>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(product));
}

inline bool runs_wgmma_code() { return emulator::runtime::runs_wgmma_code(); }
inline void publish_shared(BLINDFUSE_SITE) { emulator::runtime::publish_shared(site); }
template <int kCount>
void pin(int32_t (&registers)[kCount]) {
  emulator::runtime::pin(registers, sizeof(registers), true);
}
inline void pin(uint4& v) { emulator::runtime::pin(&v, sizeof(v), false); }
inline void wgmma_fence(BLINDFUSE_SITE) { emulator::runtime::wgmma_fence(site); }
inline void wgmma_commit(BLINDFUSE_SITE) { emulator::runtime::wgmma_commit(site); }
// wgmma.wait_group.sync.aligned: of a whole warp.
template <int kPending = 0>
void wgmma_wait(BLINDFUSE_SITE) {
  emulator::runtime::wgmma_wait(kPending, site);
}
inline uint64_t operand_descriptor(const uint8_t* shared) {
  return wgmma_descriptor(emulator::runtime::shared_address(shared));
}
// wgmma.mma_async.sync.aligned.m64nNk32.s32.s8.s8, N = kColumns, modulo 2^32: b where the
// descriptor says. It takes place when wgmma_wait() demands it, with what is then in shared memory.
template <int kColumns>
void wgmma_s8_s8(int32_t (&sums)[kColumns / 2], const uint32_t (&a)[4], const uint8_t* shared,
                 BLINDFUSE_SITE) {
  emulator::runtime::wgmma_start({sums, kColumns, &a, 0, operand_descriptor(shared)}, site);
}
// And with both operands where descriptors say.
template <int kColumns>
void wgmma_s8_s8_shared(int32_t (&sums)[kColumns / 2], uint64_t a, uint64_t b, BLINDFUSE_SITE) {
  emulator::runtime::wgmma_start({sums, kColumns, nullptr, a, b}, site);
}

#ifdef BLINDFUSE_FAKE_CUDA_RUNTIME
using TensorMap = CUtensorMap;
#else
struct alignas(64) TensorMap {
  unsigned char opaque[128];  // make_map() (tests/cuda/tensor_maps.h)
};
#endif
inline void init_barrier(uint64_t* barrier, uint32_t arrivals) {
  emulator::runtime::init_barrier(barrier, arrivals);
}
inline void publish_barriers(BLINDFUSE_SITE) { emulator::runtime::publish_barriers(site); }
inline void arrive(uint64_t* barrier, BLINDFUSE_SITE) { emulator::runtime::arrive(barrier, site); }
inline void arrive_and_expect(uint64_t* barrier, uint32_t bytes, BLINDFUSE_SITE) {
  emulator::runtime::arrive_and_expect(barrier, bytes, site);
}
inline void wait_for_phase(uint64_t* barrier, uint32_t parity, BLINDFUSE_SITE) {
  emulator::runtime::wait_for_phase(barrier, parity, site);
}
inline void copy_box(void* to, const TensorMap* map, uint32_t row, uint32_t column,
                     uint64_t* barrier) {
  emulator::runtime::copy_box(to, map, row, column, barrier);
}
inline void copy_box(void* to, const TensorMap* map, uint32_t row, uint32_t column,
                     uint64_t* barrier, uint64_t policy) {
  emulator::runtime::require_policy(policy, "copy_box");
  copy_box(to, map, row, column, barrier);
}
template <uint32_t kCount>
void give_up_registers(BLINDFUSE_SITE) {
  emulator::runtime::set_registers(kCount, false, site);
}
template <uint32_t kCount>
void take_registers(BLINDFUSE_SITE) {
  emulator::runtime::set_registers(kCount, true, site);
}

namespace emulator {

// Runs kernel(args...) to its end.
template <typename Kernel, typename... Args>
static Report launch_with(Options options, dim3 grid, dim3 block, size_t shared_bytes,
                          Kernel kernel, Args... args) {
#ifndef BLINDFUSE_WATCHED
  options.watches = false;
#endif
  // On the stack, as CUDA copies the arguments of a kernel: they are not part of its memory.
  std::tuple<Kernel, Args...> all(kernel, args...);
  return run_grid(
      options, grid, block, shared_bytes,
      [](void* context) {
        const auto& called = *static_cast<const std::tuple<Kernel, Args...>*>(context);
        std::apply([](const Kernel& k, const Args&... each) { k(each...); }, called);
      },
      &all);
}
template <typename Kernel, typename... Args>
static Report launch(dim3 grid, dim3 block, size_t shared_bytes, Kernel kernel, Args... args) {
  return launch_with({}, grid, block, shared_bytes, kernel, args...);
}

}  // namespace emulator
}  // namespace blindfuse

// CUDA's functions. A mask is always that of the whole warp.

inline void __syncthreads(BLINDFUSE_SITE) { blindfuse::emulator::runtime::block_barrier(site); }
inline void __syncwarp(unsigned mask = ~0u, BLINDFUSE_SITE) {
  blindfuse::emulator::runtime::warp_barrier(mask, site);
}
inline unsigned __reduce_add_sync(unsigned mask, unsigned value, BLINDFUSE_SITE) {
  return blindfuse::emulator::runtime::reduce_add(mask, value, site);
}
template <typename T>
T __shfl_sync(unsigned mask, T value, int source_lane, BLINDFUSE_SITE) {
  return std::bit_cast<T>(blindfuse::emulator::runtime::shuffle(
      mask, std::bit_cast<uint32_t>(value), static_cast<unsigned>(source_lane), site));
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, BLINDFUSE_SITE) {
  const unsigned lane = (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32;
  return std::bit_cast<T>(blindfuse::emulator::runtime::shuffle(
      mask, std::bit_cast<uint32_t>(value), lane ^ static_cast<unsigned>(lane_mask), site));
}
inline unsigned __reduce_xor_sync(unsigned mask, unsigned value) {
  for (int lanes = 16; lanes > 0; lanes /= 2) value ^= __shfl_xor_sync(mask, value, lanes);
  return value;
}

inline unsigned atomicAdd(unsigned* sum, unsigned value) {
  return blindfuse::emulator::runtime::atomic_add(sum, value);
}
inline unsigned long long atomicAdd(unsigned long long* sum, unsigned long long value) {
  return blindfuse::emulator::runtime::atomic_add(sum, value);
}
inline unsigned atomicXor(unsigned* word, unsigned value) {
  return blindfuse::emulator::runtime::atomic_xor(word, value);
}

constexpr unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }

template <typename T>
T __ldg(const T* p) {
  return *p;
}

// Byte i of the result is that of the eight bytes of x and y whose number is in bits 4 i .. 4 i + 2
// of the selector (CUDA C++ Programming Guide, __byte_perm).
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  return blindfuse::emulator::runtime::permute_bytes(x, y, selector);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((uint64_t{high} << 32 | low) >> (shift & 31));
}

#ifdef BLINDFUSE_FAKE_CUDA_RUNTIME
#include "tests/cuda/fake_launch.h"
#endif
