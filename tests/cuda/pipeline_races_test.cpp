// The emulator as it looks for races of what runs by itself: products of a warpgroup, and boxes
// that the tensor memory accelerator copies. Each is done right, and with each thing missing or
// wrong.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/cuda/emulator.h"
#include "tests/cuda/kernel_support.h"

#ifdef BLINDFUSE_WATCHED

namespace blindfuse::emulator {
namespace {

// What a product of a warpgroup needs, and what may be missing or wrong.
struct ProductPlan {
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
constexpr uint32_t kOperandRows = 16;

__global__ void multiply_once(ProductPlan plan, const int8_t* from, int32_t* to) {
  uint8_t* const shared = dynamic_shared_memory();
  copy_16_async(shared + 16 * threadIdx.x, from + 16 * threadIdx.x);
  commit_copies();
  if (plan.publish_early) publish_shared();
  if (plan.copy_wait) wait_copies<0>();
  if (plan.publish) publish_shared();
  if (plan.barrier) __syncthreads();
  if (plan.publish_late) publish_shared();
  int32_t sums[kOperandRows / 2] = {};
  uint4 a = make_uint4(threadIdx.x, 2, 3, 4);
  if (plan.pin) {
    pin(sums);
    pin(a);
  }
  if (plan.fence) wgmma_fence();
  if (plan.write_after_fence) sums[0] = 1;
  const uint32_t operand[4] = {a.x, a.y, a.z, a.w};
  wgmma_s8_s8<kOperandRows>(sums, operand, shared);
  if (plan.commit) wgmma_commit();
  // Of row 0 the product reads the first 32 bytes.
  if (plan.overwrite && threadIdx.x == 7) shared[0] = 1;
  if (plan.overwrite_unread && threadIdx.x == 7) shared[64] = 1;
  if (plan.touch_sums) to[threadIdx.x * (kOperandRows / 2)] = sums[3];
  if (plan.write_operand) a.x = 5;
  if (plan.wait) wgmma_wait();
  if (plan.pin) {
    pin(sums);
    pin(a);
  }
  for (uint32_t i = 0; i < kOperandRows / 2; ++i)
    to[threadIdx.x * (kOperandRows / 2) + i] = sums[i];
}

TEST(RacesOfProducts, AreFound) {
  const Memory<int8_t> from(128 * kOperandRows);
  const Memory<int32_t> to(128 * kOperandRows / 2);
  const auto expect = [&](const std::string& fault, const ProductPlan& plan) {
    EXPECT_EQ(fault_of([&] {
                launch(1, 128, from.size(), multiply_once, plan,
                       static_cast<const int8_t*>(from.data()), to.data());
              }),
              fault);
  };
  expect("", {});
  expect("no fence", {.publish = false});
  expect("no fence", {.publish = false, .publish_early = true});
  expect("", {.publish = false, .publish_late = true});
  expect("no fence", {.barrier = false});  // of what another warp has not even written
  expect("copy in flight", {.copy_wait = false});
  expect("product in flight", {.overwrite = true});
  expect("", {.overwrite_unread = true});
  expect("registers", {.fence = false});
  expect("registers", {.write_after_fence = true});
  expect("registers", {.pin = false});
  expect("registers", {.touch_sums = true});
  expect("registers", {.write_operand = true});
  expect("registers", {.commit = false});
  expect("registers", {.wait = false});
}

constexpr uint32_t kColumns = 80;  // 64 rows of one operand, 16 of the other
constexpr uint32_t kBoxBytes = 128 * kColumns;
constexpr uint32_t kRounds = 6, kStages = 2;
constexpr uint32_t kBoxShared = kStages * (kBoxBytes + 16);

// What a pipeline of boxes needs, and what may be missing or wrong.
struct BoxPlan {
  bool multiplies = true;  // the boxes; otherwise plain loads read them
  bool publish = true;
  bool barrier = true;
  bool empty_wait = true;
  bool full_wait = true;
  bool others_wait = false;         // for the other stage's barrier, in place of it
  bool one_does_not_wait = false;   // a thread, in one round
  bool hands_on = false;            // one thread waits, and a barrier of the warp tells the others
  bool releases_early = false;      // before the products are waited for
  uint32_t wrong_parity_from = 99;  // this round of the producer
  uint32_t wrong_wait_from = 99;    // this round of the consumers
  uint32_t arrivals = 4;            // that give a stage back
  uint32_t expected = kBoxBytes;
};

__global__ void take_boxes(BoxPlan plan, const __grid_constant__ TensorMap map, uint32_t* to) {
  uint8_t* const shared = dynamic_shared_memory();
  auto* const full = reinterpret_cast<uint64_t*>(shared + kStages * kBoxBytes);
  uint64_t* const empty = full + kStages;
  if (threadIdx.x == 0) {
    for (uint32_t i = 0; i < kStages; ++i) {
      init_barrier(full + i, 1);
      init_barrier(empty + i, plan.arrivals);
    }
    if (plan.publish) publish_barriers();
  }
  if (plan.barrier) __syncthreads();
  if (threadIdx.x < 128) {
    for (uint32_t round = 0; round < kRounds && threadIdx.x == 0; ++round) {
      const uint32_t stage = round % kStages;
      const uint32_t parity = round / kStages % 2 ^ (round >= plan.wrong_parity_from ? 1 : 0);
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
    const uint32_t stage = round % kStages;
    const uint32_t parity = round / kStages % 2 ^ (round >= plan.wrong_wait_from ? 1 : 0);
    const uint32_t awaited = plan.others_wait && round == 3 ? 1 - stage : stage;
    const bool waits = plan.full_wait && (!plan.hands_on || lane == 5) &&
                       !(plan.one_does_not_wait && threadIdx.x == 200 && round == 4);
    if (waits) wait_for_phase(full + awaited, parity);
    if (plan.hands_on) __syncwarp();
    const uint8_t* const box = shared + stage * kBoxBytes;
    if (plan.releases_early && !plan.multiplies && lane == 0) arrive(empty + stage);
    if (plan.multiplies) {
      pin(sums);
      wgmma_fence();
      wgmma_s8_s8_shared<16>(sums, operand_descriptor(box), operand_descriptor(box + 64 * 128));
      wgmma_commit();
      if (plan.releases_early && lane == 0) arrive(empty + stage);
      wgmma_wait();
      pin(sums);
    } else {
      words += *reinterpret_cast<const uint32_t*>(box + 4 * threadIdx.x);
      __syncwarp();
    }
    if (!plan.releases_early && lane == 0) arrive(empty + stage);
  }
  to[threadIdx.x] = words + static_cast<uint32_t>(sums[0]);
}

class RacesOfBoxes : public testing::Test {
 protected:
  RacesOfBoxes() {
    uint8_t next = 0;
    for (uint8_t& byte : from_) byte = next += 77;
  }
  // Of products and of loads of boxes. "any": which one is found first is not said.
  void expect(const std::string& fault, BoxPlan plan) {
    for (const bool multiplies : {true, false}) {
      plan.multiplies = multiplies;
      const std::string found =
          fault_of([&] { launch(1, 256, kBoxShared, take_boxes, plan, map_, to_.data()); });
      EXPECT_TRUE(fault == "any" ? !found.empty() : found == fault) << found << ' ' << multiplies;
    }
  }

  const Memory<uint8_t> from_{128 * kRounds * kColumns};
  const Memory<uint32_t> to_{256};
  const TensorMap map_ = map_of(
      from_.data(), {{128 * kRounds, kColumns}, 128 * kRounds, {128, kColumns}, BoxSwizzle::k128});
};

TEST_F(RacesOfBoxes, NoneWhereAllIsWaitedFor) {
  expect("", {});
  expect("", {.hands_on = true});
  launch(1, 256, kBoxShared, take_boxes, BoxPlan{}, map_, to_.data());
  // Row 0 times column 0 of each round, the first 32 bytes.
  int32_t expected = 0;
  for (uint32_t round = 0; round < kRounds; ++round) {
    for (uint32_t k = 0; k < 32; ++k) {
      expected += static_cast<int8_t>(from_[128 * round + k]) *
                  static_cast<int8_t>(from_[64 * 128 * kRounds + 128 * round + k]);
    }
  }
  EXPECT_EQ(to_[128], static_cast<uint32_t>(expected));
}

TEST_F(RacesOfBoxes, BarriersAreMadeAndPublished) {
  expect("no fence", {.publish = false});
  expect("no order", {.barrier = false});
}

TEST_F(RacesOfBoxes, BoxesAreThere) {
  expect("any", {.full_wait = false});
  // Another stage's barrier says nothing of this one, even if its box has come.
  expect("any", {.others_wait = true});
  expect("any", {.one_does_not_wait = true});
  expect("any", {.wrong_wait_from = 2});
  expect("hang", {.expected = kBoxBytes + 16});
  expect("misuse", {.expected = kBoxBytes - 16});
}

TEST_F(RacesOfBoxes, StagesAreGivenBackBeforeTheyAreFilledAgain) {
  expect("no order", {.releases_early = true});
  // Three of four warps are enough for the barrier, not for those who read.
  expect("any", {.arrivals = 3});
  expect("any", {.empty_wait = false});
  expect("any", {.wrong_parity_from = 2});
  expect("hang", {.arrivals = 5});
}

}  // namespace
}  // namespace blindfuse::emulator

#endif
