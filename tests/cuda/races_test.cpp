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

#ifdef BLINDFUSE_WATCHED

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
  // Blocks, warps, phases; the same row for all is read once.
  EXPECT_EQ(of_loads([](unsigned lane) { return place_in_rows(lane, 5, false); }), 3u * 2 * 4 * 7);
  EXPECT_EQ(of_loads([](unsigned lane) { return place_in_rows(lane, 5, true); }), 0u);
  EXPECT_EQ(of_loads([](unsigned lane) { return lane % 2 * 128; }), 3u * 2 * 4);
  EXPECT_EQ(of_loads([](unsigned) { return 0u; }), 0u);
  const auto of_copies = [&](bool swizzled) {
    return launch(
               2, 32, 4096,
               [=](const uint32_t* from) {
                 copy_16_async(dynamic_shared_memory() + place_in_rows(threadIdx.x, 1, swizzled),
                               from);
                 commit_copies();
                 wait_copies<0>();
               },
               static_cast<const uint32_t*>(global_.data()))
        .bank_conflicts;
  };
  EXPECT_EQ(of_copies(false), 2u * 4 * 7);
  EXPECT_EQ(of_copies(true), 0u);
}

}  // namespace
}  // namespace blindfuse::emulator

#endif
