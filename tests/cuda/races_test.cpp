// The emulator as it looks for races: kernels made to race in each way, and kernels that do not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tests/cuda/device_memory.h"
#include "tests/cuda/emulator.h"
#include "tests/cuda/kernel_support.h"
#include "tests/cuda/tensor_maps.h"

#ifdef __SANITIZE_THREAD__

namespace blindfuse::emulator {
namespace {

// Of every kernel here.
constexpr uint32_t kWords = 1024;

uint32_t* words() { return reinterpret_cast<uint32_t*>(dynamic_shared_memory()); }
// So that what was read counts as used.
void keep(uint32_t value) { asm volatile("" ::"r"(value)); }

class RaceDetector : public testing::Test {
 protected:
  template <typename Kernel>
  void expect(const std::string& fault, dim3 grid, uint32_t threads, Kernel kernel) {
    EXPECT_EQ(fault_of([&] { launch(grid, threads, 4 * kWords, kernel, global_.data()); }), fault);
  }
  // One block of two warps.
  template <typename Kernel>
  void expect(const std::string& fault, Kernel kernel) {
    expect(fault, 1, 64, kernel);
  }

  const Memory<uint32_t> global_{kWords};
};

TEST_F(RaceDetector, ABarrierOrdersTheBlock) {
  const auto exchange = [](bool waits) {
    return [waits](uint32_t* to) {
      words()[threadIdx.x] = threadIdx.x;
      if (waits) __syncthreads();
      to[threadIdx.x] = words()[63 - threadIdx.x];
    };
  };
  expect("", exchange(true));
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(global_[i], 63 - i);
  expect("no order", exchange(false));
  const auto exchange_global = [](bool waits) {
    return [waits](uint32_t* memory) {
      memory[threadIdx.x] = threadIdx.x;
      if (waits) __syncthreads();
      keep(memory[63 - threadIdx.x]);
    };
  };
  expect("", exchange_global(true));
  expect("no order", exchange_global(false));
}

// A write after a read races as a read after a write does: memory that serves two purposes.
TEST_F(RaceDetector, MemoryIsUsedAgainOnlyAfterABarrier) {
  const auto twice = [](bool waits) {
    return [waits](uint32_t*) {
      words()[threadIdx.x] = 1;
      __syncthreads();
      keep(words()[63 - threadIdx.x]);
      if (waits) __syncthreads();
      words()[threadIdx.x] = 2;
      __syncthreads();
      keep(words()[63 - threadIdx.x]);
    };
  };
  expect("", twice(true));
  expect("no order", twice(false));
}

TEST_F(RaceDetector, TwoWritesRaceAndTwoReadsDoNot) {
  expect("no order", [](uint32_t*) { words()[0] = 7; });
  expect("", [](uint32_t*) {
    if (threadIdx.x == 0) words()[0] = 7;
    __syncthreads();
    keep(words()[0]);
  });
  // Of many readers one that has no order with the writer.
  expect("no order", [](uint32_t*) {
    keep(words()[0]);
    __syncwarp();
    if (threadIdx.x == 40) words()[0] = 7;
  });
}

TEST_F(RaceDetector, BytesOfAWordAreToldApart) {
  expect("", [](uint32_t*) { dynamic_shared_memory()[threadIdx.x] = 1; });
  expect("no order", [](uint32_t*) { dynamic_shared_memory()[threadIdx.x / 2] = 1; });
  // A word and one byte of it, and 16 bytes whose last word it is.
  expect("no order", [](uint32_t*) {
    if (threadIdx.x == 0) words()[1] = 5;
    if (threadIdx.x == 1) keep(dynamic_shared_memory()[7]);
  });
  expect("no order", [](uint32_t* to) {
    if (threadIdx.x == 0) words()[7] = 5;
    if (threadIdx.x == 1) copy_16_async(words() + 4, to);
    if (threadIdx.x == 1) commit_copies(), wait_copies<0>();
  });
}

TEST_F(RaceDetector, AtomicOperationsRaceWithOthersOnly) {
  expect("", [](uint32_t*) { atomicAdd(words(), 1); });
  expect("no order", [](uint32_t*) {
    atomicAdd(words(), 1);
    if (threadIdx.x == 40) keep(words()[0]);
  });
  const auto add_wide = [] { atomicAdd(reinterpret_cast<unsigned long long*>(words()), 1); };
  expect("", [=](uint32_t*) { add_wide(); });
  expect("no order", [=](uint32_t*) {
    add_wide();
    if (threadIdx.x == 40) keep(words()[1]);
  });
}

TEST_F(RaceDetector, AWarpBarrierOrdersItsLanes) {
  // Lane i writes, lane `i ^ other` of all threads reads.
  const auto exchange = [](uint32_t other, bool waits) {
    return [=](uint32_t*) {
      words()[threadIdx.x] = 1;
      if (waits) __syncwarp();
      keep(words()[threadIdx.x ^ other]);
    };
  };
  expect("", exchange(1, true));
  expect("", exchange(31, true));
  expect("no order", exchange(1, false));
  // Another warp's lanes are not waited for.
  expect("no order", exchange(32, true));
}

TEST_F(RaceDetector, AShuffleOrdersNothing) {
  expect("no order", [](uint32_t*) {
    words()[threadIdx.x] = 1;
    keep(__shfl_xor_sync(~0u, threadIdx.x, 1));
    keep(words()[threadIdx.x ^ 1]);
  });
  expect("no order", [](uint32_t*) {
    words()[threadIdx.x] = 1;
    keep(__reduce_add_sync(~0u, threadIdx.x));
    keep(words()[threadIdx.x ^ 1]);
  });
}

TEST_F(RaceDetector, BlocksMayOnlyAddUpOrKeepApart) {
  expect("", 3, 32, [](uint32_t* to) {
    to[blockIdx.x * 32 + threadIdx.x] = 1;
    atomicAdd(to + 500, 1);
    keep(to[600]);
    words()[threadIdx.x] = 1;  // its own
  });
  expect("two blocks", 2, 32, [](uint32_t* to) {
    if (threadIdx.x == 0) to[0] = blockIdx.x;
  });
  // A block reads what one after it writes, or one before it; barriers do not help.
  for (const uint32_t writer : {0, 2}) {
    expect("two blocks", 3, 32, [=](uint32_t* to) {
      __syncthreads();
      if (threadIdx.x != 0) return;
      if (blockIdx.x == writer) to[0] = 1;
      if (blockIdx.x == 1) keep(to[0]);
    });
  }
  expect("two blocks", 2, 32, [](uint32_t* to) {
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 0) to[0] = 1;
    if (blockIdx.x == 1) atomicAdd(to, 1);
  });
}

TEST_F(RaceDetector, MemoryThatAKernelWasNotGivenIsMissed) {
  std::vector<uint32_t> others(64);
  uint32_t* const place = others.data();
  expect("foreign memory", [place](uint32_t*) { place[threadIdx.x] = 1; });
  expect("foreign memory", [](uint32_t*) { keep(words()[kWords]); });
  expect("foreign memory", [](uint32_t* to) { keep(to[kWords]); });
}

// Each thread brings 16 bytes, and reads them or those of another.
struct CopyPlan {
  bool commits = true;
  bool waits = true;
  bool barrier = true;
  uint32_t reads = 33;  // whose: the thread's number is exclusive-or-ed with it
};
auto copying(const CopyPlan& plan) {
  return [plan](uint32_t* from) {
    copy_16_async(words() + 4 * threadIdx.x, from + 4 * threadIdx.x);
    if (plan.commits) commit_copies();
    if (plan.waits) wait_copies<0>();
    if (plan.barrier) __syncthreads();
    keep(load_shared_16(words() + 4 * (threadIdx.x ^ plan.reads)).x);
  };
}

TEST_F(RaceDetector, ACopyIsThereAfterAWaitAndABarrier) {
  expect("", copying({}));
  expect("", copying({.barrier = false, .reads = 0}));
  expect("no order", copying({.barrier = false}));
  expect("copy in flight", copying({.waits = false}));
  expect("copy in flight", copying({.waits = false, .reads = 0}));
  expect("copy in flight", copying({.commits = false}));
}

TEST_F(RaceDetector, AWaitLeavesTheLastGroupsOnTheirWay) {
  const auto read = [](uint32_t group) {
    return [group](uint32_t* from) {
      for (uint32_t g = 0; g < 2; ++g) {
        copy_16_async(words() + 256 * g + 4 * threadIdx.x, from + 4 * threadIdx.x);
        commit_copies();
      }
      wait_copies<1>();
      keep(words()[256 * group + 4 * threadIdx.x]);
      wait_copies<0>();
    };
  };
  expect("", read(0));
  expect("copy in flight", read(1));
}

// In every run the read comes after the copy's beginning and before its end, so that order alone
// would let it through.
TEST_F(RaceDetector, BarriersDoNotEndACopy) {
  expect("copy in flight", [](uint32_t* from) {
    if (threadIdx.x == 0) copy_16_async(words(), from);
    __syncthreads();
    if (threadIdx.x == 40) keep(words()[0]);
    __syncthreads();
    commit_copies();
    wait_copies<0>();
  });
}

TEST_F(RaceDetector, WhatACopyReadsOrWritesMustStay) {
  const auto copy = [](bool writes) {
    return [writes](uint32_t* from) {
      copy_16_async(words() + 4 * threadIdx.x, from + 4 * threadIdx.x);
      commit_copies();
      if (writes) from[4 * threadIdx.x] = 1;
      keep(from[4 * threadIdx.x]);
      wait_copies<0>();
      from[4 * threadIdx.x] = 1;
    };
  };
  expect("", copy(false));
  expect("copy in flight", copy(true));
  expect("copy in flight", [](uint32_t* from) {
    if (threadIdx.x != 0) return;
    copy_16_async(words(), from);
    copy_16_async(words(), from + 4);
    commit_copies();
    wait_copies<0>();
  });
}

// A copy begins when it is issued: what its thread did before stands before it, and what another
// thread did does not.
TEST_F(RaceDetector, ALoadStandsBeforeACopyThatItsThreadStartsAfterIt) {
  const auto again = [](uint32_t reads) {
    return [reads](uint32_t* from) {
      uint32_t* const mine = words() + 4 * threadIdx.x;
      copy_16_async(mine, from + 4 * threadIdx.x);
      commit_copies();
      wait_copies<0>();
      __syncthreads();
      keep(words()[4 * (threadIdx.x ^ reads)]);
      copy_16_async(mine, from + 4 * threadIdx.x);
      commit_copies();
      wait_copies<0>();
    };
  };
  expect("", again(0));
  expect("no order", again(1));
}

// Rows of 128 bytes. Lane l takes 16-byte column `column` of row l, which lies xor-ed with the
// row's number if `swizzled`.
unsigned place_in_rows(unsigned row, unsigned column, bool swizzled) {
  return row * 128 + (swizzled ? column ^ (row % 8) : column) * 16;
}

TEST_F(RaceDetector, BankConflictsAreCounted) {
  const auto of_loads = [](const auto& place_of) {
    return launch(3, 64, 4096,
                  [=] {
                    if (threadIdx.x == 0) std::memset(words(), 0, 4096);
                    __syncthreads();
                    keep(load_shared_16(dynamic_shared_memory() + place_of(threadIdx.x % 32)).x);
                  })
        .bank_conflicts;
  };
  for (const unsigned column : {0, 5}) {
    EXPECT_EQ(of_loads([=](unsigned lane) { return place_in_rows(lane, column, false); }),
              3u * 2 * 4 * 7);  // blocks, warps, phases
    EXPECT_EQ(of_loads([=](unsigned lane) { return place_in_rows(lane, column, true); }), 0u);
  }
  // The same row for all is read once; pairs of rows in the same banks, four times two passes.
  EXPECT_EQ(of_loads([](unsigned) { return 0u; }), 0u);
  EXPECT_EQ(of_loads([](unsigned lane) { return lane % 2 * 128; }), 3u * 2 * 4);
  EXPECT_EQ(of_loads([](unsigned lane) { return lane % 8 * 32; }), 3u * 2 * 4);
  EXPECT_EQ(of_loads([](unsigned lane) { return lane % 8 * 16; }), 0u);

  // The first `copying` lanes copy six columns each.
  const auto of_copies = [&](bool swizzled, unsigned copying) {
    return launch(
               2, 32, 4096,
               [=](const uint32_t* from) {
                 for (unsigned column = 0; column < 6 && threadIdx.x < copying; ++column) {
                   const unsigned place = place_in_rows(threadIdx.x, column, swizzled);
                   copy_16_async(dynamic_shared_memory() + place, from);
                 }
                 commit_copies();
                 wait_copies<0>();
               },
               static_cast<const uint32_t*>(global_.data()))
        .bank_conflicts;
  };
  EXPECT_EQ(of_copies(false, 32), 2u * 6 * 4 * 7);
  EXPECT_EQ(of_copies(true, 32), 0u);
  EXPECT_EQ(of_copies(false, 11), 2u * 6 * (7 + 2));  // 8 lanes, and 3 of the next
  EXPECT_EQ(of_copies(false, 9), 2u * 6 * 7);
}

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
