// The detector itself: kernels made to race in each way, and kernels that do not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/cuda/device_memory.h"
#include "tests/cuda/races/device_side.h"

namespace blindfuse::races {
namespace {

using emulator::Memory;

// Of every kernel here.
constexpr uint32_t kWords = 1024;

uint32_t* words() { return reinterpret_cast<uint32_t*>(dynamic_shared_memory()); }
// So that what was read counts as used.
void keep(uint32_t value) { asm volatile("" ::"r"(value)); }

class RaceDetector : public testing::Test {
 protected:
  template <typename Kernel>
  Report run_blocks(dim3 grid, uint32_t threads, Kernel kernel) {
    const Range ranges[] = {{global_.data(), 4 * kWords}};
    return run({}, ranges, grid, threads, 4 * kWords, kernel, global_.data());
  }
  // One block of two warps.
  template <typename Kernel>
  Report run_block(Kernel kernel) {
    return run_blocks(1, 64, kernel);
  }

  const Memory<uint32_t> global_{kWords};
};

void expect_none(const Report& report) { EXPECT_TRUE(report.races.empty()) << report.text(); }
void expect_only(Fault fault, const Report& report) {
  EXPECT_FALSE(report.races.empty()) << name_of(fault);
  for (const Race& race : report.races) EXPECT_EQ(race.fault, fault) << report.text();
}

TEST_F(RaceDetector, ABarrierOrdersTheBlock) {
  const auto exchange = [](bool waits) {
    return [waits](uint32_t* to) {
      words()[threadIdx.x] = threadIdx.x;
      if (waits) __syncthreads();
      to[threadIdx.x] = words()[63 - threadIdx.x];
    };
  };
  expect_none(run_block(exchange(true)));
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(global_[i], 63 - i);
  expect_only(Fault::kUnordered, run_block(exchange(false)));
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
  expect_none(run_block(twice(true)));
  expect_only(Fault::kUnordered, run_block(twice(false)));
}

TEST_F(RaceDetector, TwoWritesRaceAndTwoReadsDoNot) {
  expect_only(Fault::kUnordered, run_block([](uint32_t*) { words()[0] = 7; }));
  expect_none(run_block([](uint32_t*) {
    if (threadIdx.x == 0) words()[0] = 7;
    __syncthreads();
    keep(words()[0]);
  }));
}

TEST_F(RaceDetector, GlobalMemoryOfABlockIsWatchedAlike) {
  const auto exchange = [](bool waits) {
    return [waits](uint32_t* memory) {
      memory[threadIdx.x] = threadIdx.x;
      if (waits) __syncthreads();
      keep(memory[63 - threadIdx.x]);
    };
  };
  expect_none(run_block(exchange(true)));
  expect_only(Fault::kUnordered, run_block(exchange(false)));
}

TEST_F(RaceDetector, BytesOfAWordAreToldApart) {
  expect_none(run_block([](uint32_t*) { dynamic_shared_memory()[threadIdx.x] = 1; }));
  expect_only(Fault::kUnordered,
              run_block([](uint32_t*) { dynamic_shared_memory()[threadIdx.x / 2] = 1; }));
  // A word and one byte of it, and 16 bytes whose last word it is.
  expect_only(Fault::kUnordered, run_block([](uint32_t*) {
                if (threadIdx.x == 0) words()[1] = 5;
                if (threadIdx.x == 1) keep(dynamic_shared_memory()[7]);
              }));
  expect_only(Fault::kUnordered, run_block([](uint32_t* to) {
                if (threadIdx.x == 0) words()[7] = 5;
                if (threadIdx.x == 1) copy_16_async(words() + 4, to);
                if (threadIdx.x == 1) commit_copies(), wait_copies<0>();
              }));
}

TEST_F(RaceDetector, AtomicOperationsRaceWithOthersOnly) {
  expect_none(run_block([](uint32_t*) { atomicAdd(words(), 1); }));
  expect_only(Fault::kUnordered, run_block([](uint32_t*) {
                atomicAdd(words(), 1);
                if (threadIdx.x == 40) keep(words()[0]);
              }));
  const auto add_wide = [] { atomicAdd(reinterpret_cast<unsigned long long*>(words()), 1); };
  expect_none(run_block([=](uint32_t*) { add_wide(); }));
  expect_only(Fault::kUnordered, run_block([=](uint32_t*) {
                add_wide();
                if (threadIdx.x == 40) keep(words()[1]);
              }));
}

TEST_F(RaceDetector, AWarpBarrierOrdersItsLanes) {
  // Lane i writes, lane `i ^ other` of all threads reads.
  const auto exchange = [](uint32_t other, uint32_t mask) {
    return [=](uint32_t*) {
      words()[threadIdx.x] = 1;
      const uint32_t upper = threadIdx.x % 32 / 16;
      __syncwarp(mask == ~0u ? mask : upper != 0 ? mask << 16 : mask);
      keep(words()[threadIdx.x ^ other]);
    };
  };
  expect_none(run_block(exchange(1, ~0u)));
  expect_none(run_block(exchange(31, ~0u)));
  // Another warp's lanes are not waited for.
  expect_only(Fault::kUnordered, run_block(exchange(32, ~0u)));
  // Halves of a warp, each by itself.
  expect_none(run_block(exchange(15, 0xffff)));
  expect_only(Fault::kUnordered, run_block(exchange(16, 0xffff)));
}

TEST_F(RaceDetector, OrderGoesFromLaneToLane) {
  const auto pass_on = [](uint32_t second_mask) {
    return [=](uint32_t*) {
      if (threadIdx.x == 0) words()[0] = 1;
      if (threadIdx.x < 2) __syncwarp(3);
      if (threadIdx.x == 1 || threadIdx.x == 2) __syncwarp(second_mask);
      if (threadIdx.x == 2) keep(words()[0]);
    };
  };
  expect_none(run_block(pass_on(6)));
  // The other way about lane 1 knows nothing yet of lane 0.
  expect_only(Fault::kUnordered, run_block([](uint32_t*) {
                if (threadIdx.x == 1 || threadIdx.x == 2) __syncwarp(6);
                if (threadIdx.x == 0) words()[0] = 1;
                if (threadIdx.x < 2) __syncwarp(3);
                if (threadIdx.x == 2) keep(words()[0]);
              }));
  // Lane 2 waits with a mask that it is not in.
  EXPECT_TRUE(run_block(pass_on(3)).has(Fault::kHang));
}

TEST_F(RaceDetector, AShuffleOrdersNothing) {
  expect_only(Fault::kUnordered, run_block([](uint32_t* to) {
                words()[threadIdx.x] = 1;
                to[threadIdx.x] = __shfl_xor_sync(~0u, threadIdx.x, 1);
                keep(words()[threadIdx.x ^ 1]);
              }));
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(global_[i], i ^ 1);
  expect_none(
      run_block([](uint32_t* to) { to[threadIdx.x] = __reduce_add_sync(~0u, threadIdx.x); }));
  EXPECT_EQ(global_[0], 31u * 32 / 2);
}

TEST_F(RaceDetector, ThreadsThatDoNotComeAreMissed) {
  expect_only(Fault::kHang, run_block([](uint32_t*) {
                if (threadIdx.x != 5) __syncthreads();
              }));
  expect_only(Fault::kHang, run_block([](uint32_t*) {
                if (threadIdx.x < 32) {
                  __syncthreads();
                } else {
                  __syncthreads();
                }
              }));
  expect_only(Fault::kHang, run_block([](uint32_t*) {
                if (threadIdx.x % 32 != 5) __syncwarp();
              }));
}

TEST_F(RaceDetector, BlocksMayOnlyAddUpOrKeepApart) {
  expect_none(run_blocks(3, 32, [](uint32_t* to) {
    to[blockIdx.x * 32 + threadIdx.x] = 1;
    atomicAdd(to + 500, 1);
    keep(to[600]);
    words()[threadIdx.x] = 1;  // its own
  }));
  expect_only(Fault::kAcrossBlocks, run_blocks(2, 32, [](uint32_t* to) {
                if (threadIdx.x == 0) to[0] = blockIdx.x;
              }));
  // A block reads what one after it writes, or one before it; barriers do not help.
  for (const uint32_t writer : {0, 2}) {
    expect_only(Fault::kAcrossBlocks, run_blocks(3, 32, [=](uint32_t* to) {
                  __syncthreads();
                  if (threadIdx.x != 0) return;
                  if (blockIdx.x == writer) to[0] = 1;
                  if (blockIdx.x == 1) keep(to[0]);
                }));
  }
  expect_only(Fault::kAcrossBlocks, run_blocks(2, 32, [](uint32_t* to) {
                if (threadIdx.x != 0) return;
                if (blockIdx.x == 0) to[0] = 1;
                if (blockIdx.x == 1) atomicAdd(to, 1);
              }));
}

TEST_F(RaceDetector, MemoryThatAKernelWasNotGivenIsMissed) {
  static std::vector<uint32_t> others(64);
  uint32_t* const place = others.data();
  expect_only(Fault::kUnwatched, run_block([place](uint32_t*) { place[threadIdx.x] = 1; }));
  expect_only(Fault::kUnwatched, run_block([](uint32_t*) { keep(words()[kWords]); }));
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
  expect_none(run_block(copying({})));
  expect_none(run_block(copying({.barrier = false, .reads = 0})));
  expect_only(Fault::kUnordered, run_block(copying({.barrier = false})));
  expect_only(Fault::kCopyInFlight, run_block(copying({.waits = false})));
  expect_only(Fault::kCopyInFlight, run_block(copying({.waits = false, .reads = 0})));
  expect_only(Fault::kCopyInFlight, run_block(copying({.commits = false})));
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
  expect_none(run_block(read(0)));
  expect_only(Fault::kCopyInFlight, run_block(read(1)));
}

// In every run it comes after the copy's beginning and before its end, so that order alone would
// let it through.
TEST_F(RaceDetector, BarriersDoNotEndACopy) {
  expect_only(Fault::kCopyInFlight, run_block([](uint32_t* from) {
                if (threadIdx.x == 0) copy_16_async(words(), from);
                __syncthreads();
                if (threadIdx.x == 40) keep(words()[0]);
                __syncthreads();
                commit_copies();
                wait_copies<0>();
              }));
}

TEST_F(RaceDetector, WhatACopyReadsMustStay) {
  expect_only(Fault::kCopyInFlight, run_block([](uint32_t* from) {
                copy_16_async(words() + 4 * threadIdx.x, from + 4 * threadIdx.x);
                commit_copies();
                from[4 * threadIdx.x] = 1;
                wait_copies<0>();
              }));
  expect_none(run_block([](uint32_t* from) {
    copy_16_async(words() + 4 * threadIdx.x, from + 4 * threadIdx.x);
    commit_copies();
    keep(from[4 * threadIdx.x]);
    wait_copies<0>();
    from[4 * threadIdx.x] = 1;
  }));
}

TEST_F(RaceDetector, CopiesToOnePlaceRace) {
  expect_only(Fault::kCopyInFlight, run_block([](uint32_t* from) {
                if (threadIdx.x != 0) return;
                copy_16_async(words(), from);
                copy_16_async(words(), from + 4);
                commit_copies();
                wait_copies<0>();
              }));
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
  expect_none(run_block(again(0)));
  EXPECT_TRUE(run_block(again(1)).has(Fault::kUnordered));
}

// It takes place when it is waited for.
TEST_F(RaceDetector, ACopyLandsLate) {
  global_[0] = 1;
  run_block([](uint32_t* memory) {
    if (threadIdx.x != 0) return;
    copy_16_async(words(), memory);
    commit_copies();
    memory[0] = 2;
    memory[4] = words()[0];
    wait_copies<0>();
    memory[5] = words()[0];
  });
  EXPECT_EQ(global_[4], 0xcdcdcdcd);
  EXPECT_EQ(global_[5], 2u);
}

}  // namespace
}  // namespace blindfuse::races
