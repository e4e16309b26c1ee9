// The emulator runs CUDA kernels on the processor, bit for bit as a GPU would, so that their index
// arithmetic, pipelines and barriers are tested where there is no GPU.
//
// Include it before a kernel's file: it gives the parts of CUDA's language that the kernels use,
// and takes the place of cuda/device/intrinsics.cuh. Then call emulator::launch().
//
// Blocks run one after another. Each thread of a block is a fiber, which runs until it waits for
// others: in a barrier of the block, or in a collective of its warp, which takes all 32 lanes. The
// lanes of a warp take turns; the warps run in order, each until all of it waits for the block.
// Everything happens on the caller's thread, in the same order every time.
//
// What a GPU would leave undefined or hang at is an error here, a std::logic_error out of launch().
// The other threads of the block then stay where they are forever, and nothing of theirs is
// destroyed: kernels own nothing that would mind.
//
// Of asynchronous copies and of products it is known who may see what, and when: to touch what is
// on its way, or what another thread's copy brought with no barrier since, is an error; so is a
// product of what was not published to it, or of registers with no fence, and a copy to what is
// still read.
//
// Boxes that the tensor memory accelerator copies come as late as can be, when no thread can go on
// without one, or at once. Whoever waits for a phase of a barrier runs as soon as it is complete. A
// box may only come to where no thread has read since a barrier of the block, except products that
// all of their threads have waited for.
//
// Not emulated: order by a barrier's phases of what plain loads read; a barrier whose bytes come
// before they are expected; memory that plain stores write, and that is seen late because a barrier
// is missing (it is there at once; try every Schedule), registers that change while a product reads
// them, __shared__ variables, partial warps.
#pragma once

// The include guard of cuda/device/intrinsics.cuh, which makes that file an empty one from here on.
#define BLINDFUSE_CUDA_INTRINSICS_CUH
#define BLINDFUSE_CUDA_TENSOR_COPY_CUH
#define BLINDFUSE_CUDA_WGMMA_CUH
#define BLINDFUSE_CUDA_WGMMA_SHARED_CUH

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>

#include "cuda/scan/kernels/wgmma_descriptor.h"
#include "tests/cuda/wgmma_code.h"

#ifdef BLINDFUSE_FAKE_CUDA_RUNTIME
// In addition to the stand-in for the runtime (fake_runtime.h), CUDA's own types are used, and
// cuda/device/launch.cuh has its counterpart here, too.
#define BLINDFUSE_CUDA_LAUNCH_CUH
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <vector_functions.h>

#include "cuda/device/check.h"
#include "cuda/scan/kernels/scan_args.h"
#include "tests/cuda/fake_runtime.h"
#undef __global__
#undef __device__
#undef __host__
#undef __forceinline__
#undef __launch_bounds__
#undef __grid_constant__
#undef __shared__
// One block runs at a time.
#define __shared__ static
#endif

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__

#ifndef BLINDFUSE_FAKE_CUDA_RUNTIME
struct dim3 {
  // Not explicit, as in CUDA: a number is a dim3.
  constexpr dim3(unsigned x_size = 1, unsigned y_size = 1, unsigned z_size = 1)
      : x(x_size), y(y_size), z(z_size) {}
  unsigned x, y, z;
};

struct uint3 {
  unsigned x, y, z;
};
// Kernels take memory of other types for these, which a compiler for GPUs does not mind.
struct [[gnu::may_alias]] alignas(8) uint2 {
  unsigned x, y;
};
struct [[gnu::may_alias]] alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct [[gnu::may_alias]] alignas(16) int4 {
  int x, y, z, w;
};
struct [[gnu::may_alias]] alignas(4) uchar4 {
  unsigned char x, y, z, w;
};

constexpr uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
constexpr uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
constexpr int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
constexpr uchar4 make_uchar4(unsigned char x, unsigned char y, unsigned char z, unsigned char w) {
  return {x, y, z, w};
}
#endif

// Of the running thread; the emulator sets them whenever it changes threads.
inline uint3 threadIdx{};
inline uint3 blockIdx{};
inline dim3 blockDim;
inline dim3 gridDim;

namespace blindfuse {

// The functions that cuda/device/intrinsics.cuh has for a GPU.

// The block's, 1024-byte aligned, and full of 0xcd when the block begins.
uint8_t* dynamic_shared_memory();

// cp.async.cg.shared.global. Both addresses are multiples of 16. It takes place no sooner than
// wait_copies() demands it.
void copy_16_async(void* shared, const void* global);
void commit_copies();

// ld.shared.v4
uint4 load_shared_16(const void* shared);
// ld.global.nc.v4
uint4 load_once_16(const void* global);
// createpolicy.fractional.L2::evict_first, and ld.global.nc.L2::cache_hint.v4 with it
uint64_t evict_first_policy();
uint4 load_once_16(const void* global, uint64_t policy);
// mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32, onto `sums`, modulo 2^32
void mma_s8_s8(int32_t (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);
// and four of them
void mma_s8_s8_four(int32_t (*sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[4][2]);
// dp4a.s32.s32, modulo 2^32
int32_t dot4_s8_s8(uint32_t a, uint32_t b, int32_t sum);

// And what cuda/scan/kernels/wgmma.cuh has. A product takes place no sooner than wgmma_wait()
// demands it, with what is then in shared memory.
bool runs_wgmma_code();
void publish_shared();
template <typename Registers>
void pin(Registers&) {}
void wgmma_fence();
void wgmma_commit();

// And what cuda/device/tensor_copy.cuh has.
#ifdef BLINDFUSE_FAKE_CUDA_RUNTIME
using TensorMap = CUtensorMap;
#else
struct alignas(64) TensorMap {
  unsigned char opaque[128];  // make_map() (tests/cuda/tensor_maps.h)
};
#endif
void init_barrier(uint64_t* barrier, uint32_t arrivals);
void publish_barriers();
void arrive(uint64_t* barrier);
void arrive_and_expect(uint64_t* barrier, uint32_t bytes);
void wait_for_phase(uint64_t* barrier, uint32_t parity);
void copy_box(void* to, const TensorMap* map, uint32_t row, uint32_t column, uint64_t* barrier);
void copy_box(void* to, const TensorMap* map, uint32_t row, uint32_t column, uint64_t* barrier,
              uint64_t policy);

namespace emulator {

// The steps with which a kernel synchronizes.
enum class Step {
  kNone,
  kCopyWait,      // wait_copies()
  kPublish,       // publish_shared()
  kBlockBarrier,  // __syncthreads()
  kWgmmaFence,
  kWgmmaCommit,
  kWgmmaWait,
  kPublishBarriers,
  kArrive,     // arrive()
  kExpect,     // arrive_and_expect()
  kPhaseWait,  // wait_for_phase()
};

// The orders of events that a GPU is free to choose from, as far as kernels have been wrong about
// them. A kernel that synchronizes rightly computes the same in each.
struct Schedule {
  // The last warp and the last lane first. With one or the other, a thread that does not wait for
  // another comes before it.
  bool backward = false;
  // Asynchronous copies, boxes and products take place when they are issued, rather than when they
  // are waited for. Late ones show a missing wait; early ones spoil bytes that a thread still
  // reads.
  bool early_copies = false;
  // The step that does nothing, as if the kernel did not have it: for tests that notice its
  // absence.
  Step omitted = Step::kNone;
  // The grid's last block does not run, as if the kernel were wrong.
  bool omits_last_block = false;
};

struct LaunchReport {
  // Passes that shared memory takes beyond the one that is needed, for each 8 lanes' n-th access of
  // 16 bytes: asynchronous copies, and loads. 0 is perfect.
  uint64_t bank_conflicts = 0;
};

// The parts of launch() and of the intrinsics that need not be templates. Counting bank conflicts
// takes its time.
LaunchReport run_grid(const Schedule& schedule, dim3 grid, dim3 block, size_t shared_bytes,
                      const std::function<void()>& thread, bool counts_conflicts = true);
void wait_for_copies(unsigned pending);
uint32_t shuffle(unsigned mask, uint32_t value, unsigned source_lane);
uint32_t shuffle_xor(unsigned mask, uint32_t value, unsigned lane_mask);
uint32_t reduce_add(unsigned mask, uint32_t value);
void synchronize_block();
void synchronize_warp(unsigned mask);
uint32_t permute_bytes(uint32_t x, uint32_t y, uint32_t selector);
void start_group_product(int32_t* sums, unsigned columns, const uint32_t (&a)[4],
                         uint64_t descriptor);
void start_shared_product(int32_t* sums, unsigned columns, uint64_t a_descriptor,
                          uint64_t descriptor);
void wait_for_group_products(unsigned pending);
// setmaxnreg. A thread has as many registers at first as there are for each thread of one block,
// 65,536 shared out in multiples of 8.
void set_registers(unsigned count, bool takes);
// Where in the window of shared memory this is, as instructions are told.
uint32_t shared_address(const void* shared);

// Runs kernel(args...) to its end. A block has at most 1024 threads, in whole warps. Not to be
// called from two threads of the host at once.
template <typename Kernel, typename... Args>
LaunchReport launch_with(const Schedule& schedule, dim3 grid, dim3 block, size_t shared_bytes,
                         Kernel kernel, Args... args) {
  return run_grid(schedule, grid, block, shared_bytes, [&] { kernel(args...); });
}

template <typename Kernel, typename... Args>
LaunchReport launch(dim3 grid, dim3 block, size_t shared_bytes, Kernel kernel, Args... args) {
  return launch_with({}, grid, block, shared_bytes, kernel, args...);
}

}  // namespace emulator

// wgmma.mma_async.sync.aligned.m64nNk32.s32.s8.s8, N = kColumns, modulo 2^32: b where the
// descriptor says.
template <int kColumns>
void wgmma_s8_s8(int32_t (&sums)[kColumns / 2], const uint32_t (&a)[4], const uint8_t* shared) {
  emulator::start_group_product(sums, kColumns, a,
                                wgmma_descriptor(emulator::shared_address(shared)));
}
// The same with a where its descriptor says: row m as column n of b.
template <int kColumns>
void wgmma_s8_s8_shared(int32_t (&sums)[kColumns / 2], uint64_t a, uint64_t b) {
  emulator::start_shared_product(sums, kColumns, a, b);
}
inline uint64_t operand_descriptor(const uint8_t* shared) {
  return wgmma_descriptor(emulator::shared_address(shared));
}
// wgmma.wait_group.sync.aligned, of a whole warp.
template <int kPending = 0>
void wgmma_wait() {
  static_assert(kPending >= 0 && kPending <= 7);
  emulator::wait_for_group_products(kPending);
}
template <uint32_t kCount>
void give_up_registers() {
  static_assert(kCount >= 24 && kCount <= 256 && kCount % 8 == 0);
  emulator::set_registers(kCount, false);
}
template <uint32_t kCount>
void take_registers() {
  static_assert(kCount >= 24 && kCount <= 256 && kCount % 8 == 0);
  emulator::set_registers(kCount, true);
}
// cp.async.commit_group and cp.async.wait_group, each thread for itself.
template <int kPending>
void wait_copies() {
  static_assert(kPending >= 0);
  emulator::wait_for_copies(kPending);
}

}  // namespace blindfuse

// CUDA's functions. A mask is always that of the whole warp.

inline void __syncthreads() { blindfuse::emulator::synchronize_block(); }

inline void __syncwarp(unsigned mask = ~0u) { blindfuse::emulator::synchronize_warp(mask); }

inline unsigned __reduce_add_sync(unsigned mask, unsigned value) {
  return blindfuse::emulator::reduce_add(mask, value);
}

inline unsigned __reduce_xor_sync(unsigned mask, unsigned value) {
  for (unsigned lanes = 16; lanes > 0; lanes /= 2) {
    value ^= blindfuse::emulator::shuffle_xor(mask, value, lanes);
  }
  return value;
}

template <typename T>
T __shfl_sync(unsigned mask, T value, int source_lane) {
  return std::bit_cast<T>(blindfuse::emulator::shuffle(mask, std::bit_cast<uint32_t>(value),
                                                       static_cast<unsigned>(source_lane)));
}

template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask) {
  return std::bit_cast<T>(blindfuse::emulator::shuffle_xor(mask, std::bit_cast<uint32_t>(value),
                                                           static_cast<unsigned>(lane_mask)));
}

// One thread runs at a time, so that this is atomic.
inline unsigned atomicAdd(unsigned* sum, unsigned value) {
  const unsigned old = *sum;
  *sum += value;
  return old;
}
inline unsigned long long atomicAdd(unsigned long long* sum, unsigned long long value) {
  const unsigned long long old = *sum;
  *sum += value;
  return old;
}

inline unsigned atomicXor(unsigned* word, unsigned value) {
  const unsigned old = *word;
  *word ^= value;
  return old;
}

constexpr unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }

template <typename T>
T __ldg(const T* p) {
  return *p;
}

inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  return blindfuse::emulator::permute_bytes(x, y, selector);
}

inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((uint64_t{high} << 32 | low) >> (shift & 31));
}

#ifdef BLINDFUSE_FAKE_CUDA_RUNTIME
namespace blindfuse {
namespace emulator {

// Alters a number that a kernel with such an argument has computed, if it is one of the product or
// of its check: query 0's product with column 0, the highest limb of its first word, its
// difference, or the first row of the check vector.
template <typename Argument>
void miscount(const Argument& argument) {
  if constexpr (std::is_same_v<Argument, ScanArgs>) {
    argument.products[0] ^= 0x40000000;
  } else if constexpr (std::is_same_v<Argument, Limbs>) {
    const uint32_t row = limb_row(0, 3);
    argument.bytes[argument.order == LimbOrder::kMma ? fragment_offset(row, 0)
                                                     : row * argument.pitch] ^= 1;
  } else if constexpr (std::is_same_v<Argument, WeighProductsArgs>) {
    argument.differences[0] += 1;
  } else if constexpr (std::is_same_v<Argument, WeighColumnsArgs>) {
    argument.vector[0] ^= 1;
  }
}

}  // namespace emulator

template <typename Kernel, typename... Args>
void launch_kernel(const char* name, Kernel kernel, dim3 grid, uint32_t threads,
                   uint32_t shared_bytes, cudaStream_t stream, const Args&... args) {
  const DeviceCall call(name);
  check_cuda(
      fake_cuda::launch(name, reinterpret_cast<const void*>(kernel), shared_bytes, stream,
                        [=](fake_cuda::LaunchFault fault) {
                          emulator::run_grid(
                              {.omits_last_block = fault == fake_cuda::LaunchFault::kSpoil}, grid,
                              threads, shared_bytes, [&] { kernel(args...); }, false);
                          if (fault == fake_cuda::LaunchFault::kMiscount) {
                            (emulator::miscount(args), ...);
                          }
                        }),
      name, __FILE__, __LINE__);
}

template <typename Kernel>
void load_kernel(Kernel kernel) {
  BLINDFUSE_CUDA(fake_cuda::load_kernel(reinterpret_cast<const void*>(kernel)));
}

template <typename Kernel>
void allow_shared(Kernel kernel, uint32_t shared_bytes) {
  BLINDFUSE_CUDA(fake_cuda::allow_shared(reinterpret_cast<const void*>(kernel), shared_bytes));
}

template <typename Kernel>
uint32_t blocks_a_processor(Kernel kernel, uint32_t, uint32_t shared_bytes) {
  allow_shared(kernel, shared_bytes);
  return 2;
}

}  // namespace blindfuse
#endif
