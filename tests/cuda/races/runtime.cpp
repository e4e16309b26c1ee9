// What kernels call (device_side.h, sanitizer_calls.cpp).
#include <utility>

#include "tests/cuda/races/kernel_run.h"

namespace blindfuse::races {
namespace {

class OutOfKernel {
 public:
  OutOfKernel() { is_in_kernel = false; }
  ~OutOfKernel() { is_in_kernel = true; }
  OutOfKernel(const OutOfKernel&) = delete;
  OutOfKernel& operator=(const OutOfKernel&) = delete;
};

}  // namespace

namespace runtime {

void touch(Kind kind, const void* place, size_t bytes) {
  if (!is_in_kernel) return;
  const OutOfKernel out;
  current->touch(kind, place, bytes);
}
uint8_t* shared_memory() { return current->shared(); }
uint32_t shared_address(const void* shared) {
  return static_cast<uint32_t>(static_cast<const uint8_t*>(shared) - current->shared()) +
         kWindowPlace;
}
void block_barrier(const Site& site) {
  const OutOfKernel out;
  if (current->calls(Step::kBlockBarrier, site)) {
    current->wait(Together::kBlockBarrier, 0, site, nullptr);
  }
}
void warp_barrier(uint32_t mask, const Site& site) {
  const OutOfKernel out;
  if (current->calls(Step::kWarpBarrier, site)) {
    current->wait(Together::kWarpBarrier, mask, site, nullptr);
  }
}
uint32_t shuffle(uint32_t mask, uint32_t value, uint32_t source_lane, const Site& site) {
  const OutOfKernel out;
  Shuffle shuffle{value, source_lane};
  current->wait(Together::kShuffle, mask, site, &shuffle);
  return shuffle.value;
}
uint32_t reduce_add(uint32_t mask, uint32_t value, const Site& site) {
  const OutOfKernel out;
  current->wait(Together::kReduceAdd, mask, site, &value);
  return value;
}
uint32_t atomic_add(uint32_t* sum, uint32_t value) {
  const OutOfKernel out;
  current->touch(Kind::kAtomic, sum, sizeof(*sum));
  return std::exchange(*sum, *sum + value);
}
unsigned long long atomic_add(unsigned long long* sum, unsigned long long value) {
  const OutOfKernel out;
  current->touch(Kind::kAtomic, sum, sizeof(*sum));
  return std::exchange(*sum, *sum + value);
}
void copy_16(void* shared, const void* global) {
  const OutOfKernel out;
  current->copy(static_cast<uint8_t*>(shared), static_cast<const uint8_t*>(global));
}
void commit_copies(const Site& site) {
  const OutOfKernel out;
  if (current->calls(Step::kCopyCommit, site)) current->commit_copies();
}
void wait_copies(uint32_t pending, const Site& site) {
  const OutOfKernel out;
  if (current->calls(Step::kCopyWait, site)) current->wait_copies(pending);
}
void publish_shared(const Site& site) {
  const OutOfKernel out;
  if (current->calls(Step::kPublish, site)) current->publish();
}
void multiply(int32_t (*sums)[4], const uint32_t (&a)[4], const uint32_t (*b)[2], uint32_t count,
              const Site& site) {
  const OutOfKernel out;
  if (!current->options().computes_products) return;
  Multiply multiply{sums, &a, b, count};
  current->wait(Together::kMultiply, ~0u, site, &multiply);
}
void pin(const void* registers, size_t bytes, bool are_sums) {
  const OutOfKernel out;
  current->pin(static_cast<const uint8_t*>(registers), bytes, are_sums);
}
void wgmma_fence(const Site& site) {
  const OutOfKernel out;
  if (current->calls(Step::kWgmmaFence, site)) current->wgmma_fence();
}
void wgmma_start(const WgmmaStart& start, const Site& site) {
  const OutOfKernel out;
  WgmmaStart mine = start;
  current->wait(Together::kWgmmaStart, ~0u, site, &mine);
}
void wgmma_commit(const Site& site) {
  const OutOfKernel out;
  if (current->calls(Step::kWgmmaCommit, site)) current->wgmma_commit();
}
void wgmma_wait(uint32_t pending, const Site& site) {
  const OutOfKernel out;
  if (current->calls(Step::kWgmmaWait, site)) {
    current->wait(Together::kWgmmaWait, ~0u, site, &pending);
  }
}
void init_barrier(const uint64_t* barrier, uint32_t arrivals) {
  const OutOfKernel out;
  current->init_barrier(barrier, arrivals);
}
void publish_barriers(const Site& site) {
  const OutOfKernel out;
  if (current->calls(Step::kPublishBarriers, site)) current->publish_barriers();
}
void arrive(const uint64_t* barrier, uint32_t bytes, Step step, const Site& site) {
  const OutOfKernel out;
  if (current->calls(step, site)) current->arrive(barrier, bytes);
}
void wait_for_phase(const uint64_t* barrier, uint32_t parity, const Site& site) {
  const OutOfKernel out;
  if (current->calls(Step::kPhaseWait, site)) current->wait_for_phase(barrier, parity, site);
}
void copy_box(void* to, const void* map, uint32_t row, uint32_t column, const uint64_t* barrier) {
  const OutOfKernel out;
  current->copy_box(static_cast<uint8_t*>(to), map, row, column, barrier);
}

}  // namespace runtime

}  // namespace blindfuse::races
