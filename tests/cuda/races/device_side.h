// Takes the place of cuda/device/intrinsics.cuh and cuda/scan/kernels/wgmma.cuh for kernels that
// are looked at for races. Include it before a kernel's file, in a file that is compiled with
// -fsanitize=thread; then call races::run() (run.h).
//
// An instruction that is not here is not known to the detector, and a kernel with it does not
// compile.
#pragma once

#define BLINDFUSE_CUDA_INTRINSICS_CUH
#define BLINDFUSE_CUDA_TENSOR_COPY_CUH
#define BLINDFUSE_CUDA_WGMMA_CUH
#define BLINDFUSE_CUDA_WGMMA_SHARED_CUH

#include <bit>
#include <cstdint>

#include "cuda/scan/kernels/wgmma_descriptor.h"
#include "tests/cuda/races/run.h"

// Evaluated where the function is called.
#define BLINDFUSE_SITE \
  const blindfuse::races::Site& site = {__builtin_FILE(), __builtin_LINE(), __builtin_FUNCTION()}

namespace blindfuse {

inline uint8_t* dynamic_shared_memory() { return races::runtime::shared_memory(); }

inline void copy_16_async(void* shared, const void* global) {
  races::runtime::copy_16(shared, global);
}
inline void commit_copies(BLINDFUSE_SITE) { races::runtime::commit_copies(site); }
template <int kPending>
void wait_copies(BLINDFUSE_SITE) {
  races::runtime::wait_copies(kPending, site);
}

// Not for files that are compiled otherwise: theirs would not be seen.
static inline uint4 load_shared_16(const void* shared) {
  return *static_cast<const uint4*>(shared);
}
static inline uint4 load_once_16(const void* global) { return *static_cast<const uint4*>(global); }
// A cache hint orders nothing.
inline uint64_t evict_first_policy() { return 0; }
static inline uint4 load_once_16(const void* global, uint64_t /*policy*/) {
  return load_once_16(global);
}

inline void mma_s8_s8(int32_t (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                      BLINDFUSE_SITE) {
  races::runtime::multiply(&sums, a, &b, 1, site);
}
inline void mma_s8_s8_four(int32_t (*sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[4][2],
                           BLINDFUSE_SITE) {
  races::runtime::multiply(sums, a, b, 4, site);
}
inline int32_t dot4_s8_s8(uint32_t a, uint32_t b, int32_t sum) {
  auto result = static_cast<uint32_t>(sum);
  for (unsigned i = 0; i < 32; i += 8) {
    result += static_cast<uint32_t>(int32_t{static_cast<int8_t>(a >> i)} *
                                    int32_t{static_cast<int8_t>(b >> i)});
  }
  return static_cast<int32_t>(result);
}

inline bool runs_wgmma_code() { return true; }
inline void publish_shared(BLINDFUSE_SITE) { races::runtime::publish_shared(site); }
template <int kCount>
void pin(int32_t (&registers)[kCount]) {
  races::runtime::pin(registers, sizeof(registers), true);
}
inline void pin(uint4& v) { races::runtime::pin(&v, sizeof(v), false); }
inline void wgmma_fence(BLINDFUSE_SITE) { races::runtime::wgmma_fence(site); }
inline void wgmma_commit(BLINDFUSE_SITE) { races::runtime::wgmma_commit(site); }
template <int kPending = 0>
void wgmma_wait(BLINDFUSE_SITE) {
  races::runtime::wgmma_wait(kPending, site);
}
template <int kColumns>
void wgmma_s8_s8(int32_t (&sums)[kColumns / 2], const uint32_t (&a)[4], const uint8_t* shared,
                 BLINDFUSE_SITE) {
  races::runtime::wgmma_start(
      {sums, kColumns, &a, 0, wgmma_descriptor(races::runtime::shared_address(shared))}, site);
}
inline uint64_t operand_descriptor(const uint8_t* shared) {
  return wgmma_descriptor(races::runtime::shared_address(shared));
}
template <int kColumns>
void wgmma_s8_s8_shared(int32_t (&sums)[kColumns / 2], uint64_t a, uint64_t b, BLINDFUSE_SITE) {
  races::runtime::wgmma_start({sums, kColumns, nullptr, a, b}, site);
}

struct alignas(64) TensorMap {
  unsigned char opaque[128];  // make_map() (tests/cuda/tensor_maps.h)
};
inline void init_barrier(uint64_t* barrier, uint32_t arrivals) {
  races::runtime::init_barrier(barrier, arrivals);
}
inline void publish_barriers(BLINDFUSE_SITE) { races::runtime::publish_barriers(site); }
inline void arrive(uint64_t* barrier, BLINDFUSE_SITE) {
  races::runtime::arrive(barrier, 0, races::Step::kArrive, site);
}
inline void arrive_and_expect(uint64_t* barrier, uint32_t bytes, BLINDFUSE_SITE) {
  races::runtime::arrive(barrier, bytes, races::Step::kExpect, site);
}
inline void wait_for_phase(uint64_t* barrier, uint32_t parity, BLINDFUSE_SITE) {
  races::runtime::wait_for_phase(barrier, parity, site);
}
inline void copy_box(void* to, const TensorMap* map, uint32_t row, uint32_t column,
                     uint64_t* barrier) {
  races::runtime::copy_box(to, map, row, column, barrier);
}
inline void copy_box(void* to, const TensorMap* map, uint32_t row, uint32_t column,
                     uint64_t* barrier, uint64_t /*policy*/) {
  races::runtime::copy_box(to, map, row, column, barrier);
}
// Registers that change hands order nothing.
template <uint32_t kCount>
void give_up_registers() {}
template <uint32_t kCount>
void take_registers() {}

}  // namespace blindfuse

// CUDA's functions.

inline void __syncthreads(BLINDFUSE_SITE) { blindfuse::races::runtime::block_barrier(site); }
inline void __syncwarp(unsigned mask = ~0u, BLINDFUSE_SITE) {
  blindfuse::races::runtime::warp_barrier(mask, site);
}
inline unsigned __reduce_add_sync(unsigned mask, unsigned value, BLINDFUSE_SITE) {
  return blindfuse::races::runtime::reduce_add(mask, value, site);
}
template <typename T>
T __shfl_sync(unsigned mask, T value, int source_lane, BLINDFUSE_SITE) {
  return std::bit_cast<T>(blindfuse::races::runtime::shuffle(
      mask, std::bit_cast<uint32_t>(value), static_cast<unsigned>(source_lane), site));
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, BLINDFUSE_SITE) {
  return std::bit_cast<T>(blindfuse::races::runtime::shuffle(
      mask, std::bit_cast<uint32_t>(value), threadIdx.x % 32 ^ static_cast<unsigned>(lane_mask),
      site));
}
inline unsigned atomicAdd(unsigned* sum, unsigned value) {
  return blindfuse::races::runtime::atomic_add(sum, value);
}
inline unsigned long long atomicAdd(unsigned long long* sum, unsigned long long value) {
  return blindfuse::races::runtime::atomic_add(sum, value);
}
template <typename T>
T __ldg(const T* p) {
  return *p;
}
constexpr unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }

// Byte i of the result is that of the eight bytes of x and y whose number is in bits 4 i .. 4 i + 2
// of the selector (CUDA C++ Programming Guide, __byte_perm).
constexpr unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const uint64_t bytes = uint64_t{y} << 32 | x;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    result |= static_cast<unsigned>(bytes >> (selector >> 4 * i & 7) * 8 & 0xff) << 8 * i;
  }
  return result;
}
constexpr unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((uint64_t{high} << 32 | low) >> (shift & 31));
}
