// What kernels call (emulator.h), and what -fsanitize=thread compiles into them: who reads and
// writes. The sanitizer's library is not linked (compiler-rt, tsan_interface.h).
#include <cstdlib>
#include <utility>

#include "tests/cuda/machine_state.h"

namespace blindfuse::emulator {
namespace {

// Any value that nothing else has: the bits of a policy have a meaning on a GPU only.
constexpr uint64_t kEvictFirst = 0x14f0'0000'0000'0000;
bool wgmma_code_runs = true;

// The kernel's code does not run meanwhile, unless another thread's does.
class OutOfKernel {
 public:
  OutOfKernel() : was_in_kernel_(std::exchange(is_in_kernel, false)) {}
  ~OutOfKernel() { is_in_kernel = was_in_kernel_; }
  OutOfKernel(const OutOfKernel&) = delete;
  OutOfKernel& operator=(const OutOfKernel&) = delete;

 private:
  bool was_in_kernel_;
};

void require_all(uint32_t mask) {
  if (mask != ~uint32_t{0}) machine->fail(Fault::kMisuse, "a mask of some lanes is not emulated");
}

}  // namespace

void set_wgmma_code(bool runs) { wgmma_code_runs = runs; }

namespace runtime {

void touch(Kind kind, const void* place, size_t bytes) {
  if (!is_in_kernel) return;
  const OutOfKernel out;
  machine->touch(kind, place, bytes);
}
uint8_t* shared_memory() { return machine->shared(); }
uint32_t shared_address(const void* shared) {
  return static_cast<uint32_t>(static_cast<const uint8_t*>(shared) - machine->shared()) +
         kWindowPlace;
}
void require_place(const void* place, const char* what) {
  if (reinterpret_cast<uintptr_t>(place) % kCopyBytes == 0) return;
  machine->fail(Fault::kMisuse, std::string(what) + " of an address that is not a multiple of 16");
}
void count_load(const void* shared) {
  const OutOfKernel out;
  machine->count_load(shared);
}
void block_barrier(const Site& site) {
  const OutOfKernel out;
  if (machine->calls(Step::kBlockBarrier, site)) machine->join_block(site);
}
void warp_barrier(uint32_t mask, const Site& site) {
  const OutOfKernel out;
  require_all(mask);
  if (machine->calls(Step::kWarpBarrier, site)) {
    machine->join_warp(Together::kWarpBarrier, nullptr, site);
  }
}
uint32_t shuffle(uint32_t mask, uint32_t value, uint32_t source_lane, const Site& site) {
  const OutOfKernel out;
  require_all(mask);
  Shuffle operands{value, source_lane};
  machine->join_warp(Together::kShuffle, &operands, site);
  return operands.value;
}
uint32_t reduce_add(uint32_t mask, uint32_t value, const Site& site) {
  const OutOfKernel out;
  require_all(mask);
  machine->join_warp(Together::kReduceAdd, &value, site);
  return value;
}
uint32_t atomic_add(uint32_t* sum, uint32_t value) {
  touch(Kind::kAtomic, sum, sizeof(*sum));
  return std::exchange(*sum, *sum + value);
}
unsigned long long atomic_add(unsigned long long* sum, unsigned long long value) {
  touch(Kind::kAtomic, sum, sizeof(*sum));
  return std::exchange(*sum, *sum + value);
}
uint32_t atomic_xor(uint32_t* word, uint32_t value) {
  touch(Kind::kAtomic, word, sizeof(*word));
  return std::exchange(*word, *word ^ value);
}
uint32_t permute_bytes(uint32_t x, uint32_t y, uint32_t selector) {
  // CUDA's documents ignore these bits; the instruction repeats the byte's sign where they are set.
  if ((selector & 0x8888) != 0) {
    machine->fail(Fault::kMisuse, "__byte_perm with the highest bit of a selector set");
  }
  const uint64_t bytes = uint64_t{y} << 32 | x;
  uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    result |= static_cast<uint32_t>(bytes >> (selector >> 4 * i & 7) * 8 & 0xff) << 8 * i;
  }
  return result;
}
void copy_16(void* shared, const void* global) {
  const OutOfKernel out;
  machine->copy(static_cast<uint8_t*>(shared), static_cast<const uint8_t*>(global));
}
void commit_copies(const Site& site) {
  const OutOfKernel out;
  if (machine->calls(Step::kCopyCommit, site)) machine->commit_copies();
}
void wait_copies(uint32_t pending, const Site& site) {
  const OutOfKernel out;
  if (machine->calls(Step::kCopyWait, site)) machine->wait_copies(pending);
}
void publish_shared(const Site& site) {
  const OutOfKernel out;
  if (machine->calls(Step::kPublish, site)) machine->publish();
}
void multiply(int32_t (*sums)[4], const uint32_t (&a)[4], const uint32_t (*b)[2], uint32_t count,
              const Site& site) {
  const OutOfKernel out;
  Multiply operands{sums, &a, b, count};
  machine->join_warp(Together::kMultiply, &operands, site);
}
bool runs_wgmma_code() { return wgmma_code_runs; }
void pin(const void* registers, size_t bytes, bool are_sums) {
  const OutOfKernel out;
  machine->pin(static_cast<const uint8_t*>(registers), bytes, are_sums);
}
void wgmma_fence(const Site& site) {
  const OutOfKernel out;
  if (machine->calls(Step::kWgmmaFence, site)) machine->wgmma_fence();
}
void wgmma_start(const GroupStart& start, const Site& site) {
  const OutOfKernel out;
  GroupStart operands = start;
  machine->join_warp(Together::kGroupStart, &operands, site);
}
void wgmma_commit(const Site& site) {
  const OutOfKernel out;
  if (machine->calls(Step::kWgmmaCommit, site)) machine->wgmma_commit();
}
void wgmma_wait(uint32_t pending, const Site& site) {
  const OutOfKernel out;
  if (machine->calls(Step::kWgmmaWait, site)) {
    machine->join_warp(Together::kGroupWait, &pending, site);
  }
}
void init_barrier(const uint64_t* barrier, uint32_t arrivals) {
  const OutOfKernel out;
  machine->init_barrier(barrier, arrivals);
}
void publish_barriers(const Site& site) {
  const OutOfKernel out;
  if (machine->calls(Step::kPublishBarriers, site)) machine->publish_barriers();
}
void arrive(const uint64_t* barrier, const Site& site) {
  const OutOfKernel out;
  if (machine->calls(Step::kArrive, site)) machine->arrive(barrier, 0, "arrive");
}
void arrive_and_expect(const uint64_t* barrier, uint32_t bytes, const Site& site) {
  const OutOfKernel out;
  if (machine->calls(Step::kExpect, site)) machine->arrive(barrier, bytes, "arrive_and_expect");
}
void wait_for_phase(const uint64_t* barrier, uint32_t parity, const Site& site) {
  const OutOfKernel out;
  if (machine->calls(Step::kPhaseWait, site)) machine->wait_for_phase(barrier, parity, site);
}
void copy_box(void* to, const void* map, uint32_t row, uint32_t column, const uint64_t* barrier) {
  const OutOfKernel out;
  machine->copy_box(static_cast<uint8_t*>(to), map, static_cast<int32_t>(row),
                    static_cast<int32_t>(column), barrier);
}
void set_registers(uint32_t count, bool takes, const Site& site) {
  const OutOfKernel out;
  machine->set_registers(count, takes, site);
}
uint64_t policy() { return kEvictFirst; }
void require_policy(uint64_t policy, const char* what) {
  if (policy == kEvictFirst) return;
  machine->fail(Fault::kMisuse,
                std::string(what) + " with a policy that evict_first_policy() did not make");
}

}  // namespace runtime
}  // namespace blindfuse::emulator

#ifndef __SANITIZE_THREAD__  // which brings the library
// The names are the compiler's.
#pragma GCC diagnostic ignored "-Wmissing-declarations"

extern "C" {

using blindfuse::emulator::Kind;
using blindfuse::emulator::runtime::touch;

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit(void*) {}

#define BLINDFUSE_SIZE(bytes)                                                          \
  void __tsan_read##bytes(void* place) { touch(Kind::kRead, place, bytes); }           \
  void __tsan_write##bytes(void* place) { touch(Kind::kWrite, place, bytes); }         \
  void __tsan_unaligned_read##bytes(void* place) { touch(Kind::kRead, place, bytes); } \
  void __tsan_unaligned_write##bytes(void* place) { touch(Kind::kWrite, place, bytes); }
BLINDFUSE_SIZE(1)
BLINDFUSE_SIZE(2)
BLINDFUSE_SIZE(4)
BLINDFUSE_SIZE(8)
BLINDFUSE_SIZE(16)
#undef BLINDFUSE_SIZE

void __tsan_read_range(void* place, size_t bytes) { touch(Kind::kRead, place, bytes); }
void __tsan_write_range(void* place, size_t bytes) { touch(Kind::kWrite, place, bytes); }
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
// Of the tests around kernels alone: kernels have functions for what is atomic.
uint8_t __tsan_atomic8_load(const volatile uint8_t* place, int) {
  return __atomic_load_n(place, __ATOMIC_SEQ_CST);
}
uint32_t __tsan_atomic32_fetch_add(volatile uint32_t* place, uint32_t by, int) {
  return __atomic_fetch_add(place, by, __ATOMIC_SEQ_CST);
}

}  // extern "C"
#endif
