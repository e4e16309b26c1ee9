// The detector where products of a warpgroup read shared memory, and use registers, while the
// program goes on.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "tests/cuda/device_memory.h"
#include "tests/cuda/races/device_side.h"

namespace blindfuse::races {
namespace {

using emulator::Memory;

constexpr uint32_t kRows = 16;  // of the operand in shared memory, of 128 bytes each
constexpr uint32_t kBytes = 128 * kRows;

// What a product needs, and what may be missing or wrong.
struct Plan {
  bool copy_wait = true;
  bool publish = true;
  bool publish_early = false;  // before the copy is waited for
  bool publish_late = false;   // by those who start the product, after the barrier
  bool barrier = true;
  bool pin = true;
  bool fence = true;
  bool commit = true;
  bool wait = true;
  bool overwrite = false;         // before the wait
  bool overwrite_unread = false;  // the same, but bytes that are not of the operand
  bool touch_sums = false;        // before the wait
  bool write_operand = false;     // the registers of a, before the wait
  bool write_after_fence = false;
};

__global__ void multiply_once(Plan plan, const int8_t* from, int32_t* to) {
  uint8_t* const shared = dynamic_shared_memory();
  copy_16_async(shared + 16 * threadIdx.x, from + 16 * threadIdx.x);
  commit_copies();
  if (plan.publish_early) publish_shared();
  if (plan.copy_wait) wait_copies<0>();
  if (plan.publish) publish_shared();
  if (plan.barrier) __syncthreads();
  if (plan.publish_late) publish_shared();
  int32_t sums[kRows / 2] = {};
  uint4 a = make_uint4(threadIdx.x, 2, 3, 4);
  if (plan.pin) {
    pin(sums);
    pin(a);
  }
  if (plan.fence) wgmma_fence();
  if (plan.write_after_fence) sums[0] = 1;
  const uint32_t words[4] = {a.x, a.y, a.z, a.w};
  wgmma_s8_s8<kRows>(sums, words, shared);
  if (plan.commit) wgmma_commit();
  // Of row 0 the product reads the first 32 bytes.
  if (plan.overwrite && threadIdx.x == 7) shared[0] = 1;
  if (plan.overwrite_unread && threadIdx.x == 7) shared[64] = 1;
  if (plan.touch_sums) to[threadIdx.x * (kRows / 2)] = sums[3];
  if (plan.write_operand) a.x = 5;
  if (plan.wait) wgmma_wait();
  if (plan.pin) {
    pin(sums);
    pin(a);
  }
  for (uint32_t i = 0; i < kRows / 2; ++i) to[threadIdx.x * (kRows / 2) + i] = sums[i];
}

class RacesOfProducts : public testing::Test {
 protected:
  RacesOfProducts() {
    uint8_t next = 0;
    for (int8_t& byte : from_) byte = static_cast<int8_t>(next += 77);
  }
  Report run_once(const Plan& plan) {
    const Range ranges[] = {{from_.data(), kBytes}, {to_.data(), 4 * kSums}};
    return run({}, ranges, 1, 128, kBytes, multiply_once, plan,
               static_cast<const int8_t*>(from_.data()), to_.data());
  }
  void expect_only(Fault fault, const Plan& plan) {
    const Report report = run_once(plan);
    EXPECT_FALSE(report.races.empty());
    for (const Race& race : report.races) EXPECT_EQ(race.fault, fault) << report.text();
  }

  static constexpr uint64_t kSums = 128 * kRows / 2;
  const Memory<int8_t> from_{kBytes};
  const Memory<int32_t> to_{kSums};
};

TEST_F(RacesOfProducts, NoneWhereAllIsWaitedFor) {
  const Report report = run_once({});
  EXPECT_TRUE(report.races.empty()) << report.text();
  // Row 0 of the first warp's 16: a's words of lanes 0 to 3. Byte k of row n of the other operand
  // is in 16-byte piece k / 16, exclusive-or-ed with the row's number modulo 8.
  for (uint32_t n = 0; n < kRows; ++n) {
    int32_t expected = 0;
    for (uint32_t k = 0; k < 32; ++k) {
      const uint32_t lane = k % 16 / 4;
      const int32_t a = k % 4 != 0 ? 0 : k < 16 ? static_cast<int32_t>(lane) : 3;
      expected += a * from_[n * 128 + (k / 16 ^ n % 8) * 16 + k % 16];
    }
    EXPECT_EQ(to_[n % 8 / 2 * (kRows / 2) + n / 8 * 4 + n % 2], expected) << n;
  }
}

TEST_F(RacesOfProducts, OperandsAreThereAndPublished) {
  expect_only(Fault::kUnpublished, {.publish = false});
  expect_only(Fault::kUnpublished, {.publish = false, .publish_early = true});
  const Report report = run_once({.publish = false, .publish_late = true});
  EXPECT_TRUE(report.races.empty()) << report.text();
  EXPECT_TRUE(run_once({.barrier = false}).has(Fault::kUnordered));
  EXPECT_TRUE(run_once({.copy_wait = false}).has(Fault::kCopyInFlight));
}

TEST_F(RacesOfProducts, OperandsStayUntilTheWait) {
  EXPECT_TRUE(run_once({.overwrite = true}).has(Fault::kProductInFlight));
  const Report report = run_once({.overwrite_unread = true});
  EXPECT_TRUE(report.races.empty()) << report.text();
}

TEST_F(RacesOfProducts, RegistersNeedAFenceBeforeAndAWaitAfter) {
  expect_only(Fault::kRegisters, {.fence = false});
  expect_only(Fault::kRegisters, {.write_after_fence = true});
  expect_only(Fault::kRegisters, {.pin = false});
  expect_only(Fault::kRegisters, {.touch_sums = true});
  expect_only(Fault::kRegisters, {.write_operand = true});
  EXPECT_TRUE(run_once({.commit = false}).has(Fault::kRegisters));
  EXPECT_TRUE(run_once({.wait = false}).has(Fault::kRegisters));
  EXPECT_TRUE(run_once({.wait = false}).has(Fault::kProductInFlight));
}

}  // namespace
}  // namespace blindfuse::races
