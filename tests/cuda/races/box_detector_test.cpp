// The detector where the tensor memory accelerator copies boxes, and barriers with phases give
// order.
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>

#include "tests/cuda/device_memory.h"
#include "tests/cuda/races/device_side.h"
#include "tests/cuda/tensor_maps.h"

namespace blindfuse::races {
namespace {

using emulator::Memory;

constexpr uint32_t kColumns = 80;  // 64 rows of one operand, 16 of the other
constexpr uint32_t kBoxBytes = 128 * kColumns;
constexpr uint32_t kRounds = 6, kBoxStages = 2;
constexpr uint32_t kBoxShared = kBoxStages * (kBoxBytes + 16);

// What a pipeline needs, and what may be missing or wrong.
struct BoxPlan {
  bool multiplies = true;  // the boxes; otherwise plain loads read them
  bool publish = true;
  bool barrier = true;
  bool empty_wait = true;
  bool full_wait = true;
  bool others_wait = false;     // for the other stage's barrier, in place of it
  bool hands_on = false;        // one thread waits, and a barrier of the warp tells the others
  bool releases_early = false;  // before the products are waited for
  uint32_t arrivals = 4;        // that give a stage back
  uint32_t expected = kBoxBytes;
};

__global__ void take_boxes(BoxPlan plan, const __grid_constant__ TensorMap map, uint32_t* to) {
  uint8_t* const shared = dynamic_shared_memory();
  auto* const full = reinterpret_cast<uint64_t*>(shared + kBoxStages * kBoxBytes);
  uint64_t* const empty = full + kBoxStages;
  if (threadIdx.x == 0) {
    for (uint32_t i = 0; i < kBoxStages; ++i) {
      init_barrier(full + i, 1);
      init_barrier(empty + i, plan.arrivals);
    }
    if (plan.publish) publish_barriers();
  }
  if (plan.barrier) __syncthreads();
  if (threadIdx.x < 128) {
    for (uint32_t round = 0; round < kRounds && threadIdx.x == 0; ++round) {
      const uint32_t stage = round % kBoxStages, parity = round / kBoxStages % 2;
      if (plan.empty_wait) wait_for_phase(empty + stage, parity ^ 1);
      arrive_and_expect(full + stage, plan.expected);
      copy_box(shared + stage * kBoxBytes, &map, 128 * round, 0, full + stage);
    }
    return;
  }
  const uint32_t lane = threadIdx.x % 32;
  int32_t sums[8] = {};
  uint32_t words = 0;
  for (uint32_t round = 0; round < kRounds; ++round) {
    const uint32_t stage = round % kBoxStages, parity = round / kBoxStages % 2;
    const uint32_t awaited = plan.others_wait && round == 3 ? 1 - stage : stage;
    if (plan.full_wait && (!plan.hands_on || lane == 5)) wait_for_phase(full + awaited, parity);
    if (plan.hands_on) __syncwarp();
    const uint8_t* const box = shared + stage * kBoxBytes;
    if (plan.multiplies) {
      pin(sums);
      wgmma_fence();
      wgmma_s8_s8_shared<16>(sums, operand_descriptor(box), operand_descriptor(box + 64 * 128));
      wgmma_commit();
      if (plan.releases_early && lane == 0) arrive(empty + stage);
      wgmma_wait();
      pin(sums);
      if (!plan.releases_early && lane == 0) arrive(empty + stage);
    } else {
      if (plan.releases_early && lane == 0) arrive(empty + stage);
      words += *reinterpret_cast<const uint32_t*>(box + 4 * threadIdx.x);
      __syncwarp();
      if (!plan.releases_early && lane == 0) arrive(empty + stage);
    }
  }
  to[threadIdx.x] = words + static_cast<uint32_t>(sums[0]);
}

class RacesOfBoxes : public testing::Test {
 protected:
  RacesOfBoxes() {
    uint8_t next = 0;
    for (uint8_t& byte : from_) byte = next += 77;
    const std::string why = emulator::make_map(
        &map_, emulator::arguments_for(
                   from_.data(),
                   {{128 * kRounds, kColumns}, 128 * kRounds, {128, kColumns}, BoxSwizzle::k128}));
    if (!why.empty()) throw std::logic_error(why);
  }
  Report run_once(const BoxPlan& plan) {
    const Range ranges[] = {{from_.data(), 128 * kRounds * kColumns}, {to_.data(), 4 * 256}};
    return run({}, ranges, 1, 256, kBoxShared, take_boxes, plan, map_, to_.data());
  }
  void expect_none(const BoxPlan& plan) {
    const Report report = run_once(plan);
    EXPECT_TRUE(report.races.empty()) << report.text();
  }
  void expect(Fault fault, const BoxPlan& plan) {
    const Report report = run_once(plan);
    EXPECT_TRUE(report.has(fault)) << report.text();
  }

  const Memory<uint8_t> from_{128 * kRounds * kColumns};
  const Memory<uint32_t> to_{256};
  TensorMap map_{};
};

TEST_F(RacesOfBoxes, NoneWhereAllIsWaitedFor) {
  expect_none({});
  // Row 0 times column 0 of each round, the first 32 bytes.
  int32_t expected = 0;
  for (uint32_t round = 0; round < kRounds; ++round) {
    for (uint32_t k = 0; k < 32; ++k) {
      expected += static_cast<int8_t>(from_[128 * round + k]) *
                  static_cast<int8_t>(from_[64 * 128 * kRounds + 128 * round + k]);
    }
  }
  EXPECT_EQ(to_[128], static_cast<uint32_t>(expected));
  expect_none({.multiplies = false});
  expect_none({.hands_on = true});
  expect_none({.multiplies = false, .hands_on = true});
}

TEST_F(RacesOfBoxes, BarriersAreMadeAndPublished) {
  expect(Fault::kUnpublished, {.publish = false});
  expect(Fault::kUnordered, {.barrier = false});
}

TEST_F(RacesOfBoxes, BoxesAreThere) {
  for (const bool multiplies : {false, true}) {
    const auto with = [&](BoxPlan plan) {
      plan.multiplies = multiplies;
      return plan;
    };
    expect(Fault::kCopyInFlight, with({.full_wait = false}));
    // Another stage's barrier says nothing of this one, even if its box has come.
    EXPECT_FALSE(run_once(with({.others_wait = true})).races.empty());
    expect(Fault::kHang, with({.expected = kBoxBytes + 16}));
    expect(Fault::kHang, with({.expected = kBoxBytes - 16}));
  }
}

TEST_F(RacesOfBoxes, StagesAreGivenBackBeforeTheyAreFilledAgain) {
  expect(Fault::kUnordered, {.releases_early = true});
  expect(Fault::kUnordered, {.multiplies = false, .releases_early = true});
  // Three of four warps are enough for the barrier, not for those who read.
  EXPECT_FALSE(run_once({.arrivals = 3}).races.empty());
  EXPECT_FALSE(run_once({.multiplies = false, .arrivals = 3}).races.empty());
  EXPECT_FALSE(run_once({.empty_wait = false}).races.empty());
  expect(Fault::kHang, {.arrivals = 5});
}

}  // namespace
}  // namespace blindfuse::races
