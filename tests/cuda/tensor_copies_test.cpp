// What the emulator of CUDA has of the tensor memory accelerator, of barriers with phases and of
// registers that change hands: against the PTX ISA's and cuda.h's words, and what it refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tests/cuda/emulator.h"
#include "tests/cuda/kernel_support.h"
#include "tests/cuda/tensor_maps.h"
#include "tests/support.h"

namespace blindfuse::emulator {
namespace {

using support::SeededRandom;

TEST(TensorMaps, AreRefusedForEachRequirementOfTheDriver) {
  alignas(64) static const uint8_t bytes[4096] = {};
  const TensorMapArguments good = arguments_for(bytes, {{100, 7}, 112, {128, 8}, BoxSwizzle::k128});
  alignas(64) uint8_t map[128 + 64];
  EXPECT_EQ(make_map(map, good), "");
  EXPECT_NE(make_map(map + 16, good), "");
  const auto why = [&](auto change) {
    TensorMapArguments arguments = good;
    change(arguments);
    return make_map(map, arguments);
  };
  using A = TensorMapArguments;
  EXPECT_EQ(why([](A& a) { a.data_type = 16; }), "tensorDataType is none of the types");
  EXPECT_EQ(why([](A& a) { a.rank = 0; }), "tensorRank is not from 1 to 5");
  EXPECT_EQ(why([](A& a) { a.rank = 6; }), "tensorRank is not from 1 to 5");
  EXPECT_EQ(why([](A& a) { a.address = bytes + 8; }), "globalAddress is not aligned to 16 bytes");
  EXPECT_EQ(why([](A& a) { a.sizes[1] = 0; }), "globalDim is not from 1 to 2^32");
  EXPECT_EQ(why([](A& a) { a.sizes[1] = (uint64_t{1} << 32) + 1; }),
            "globalDim is not from 1 to 2^32");
  EXPECT_EQ(why([](A& a) { a.sizes[1] = uint64_t{1} << 32; }), "");
  EXPECT_EQ(why([](A& a) { a.strides[0] = 120; }), "globalStrides is not a multiple of 16");
  EXPECT_EQ(why([](A& a) { a.strides[0] = uint64_t{1} << 40; }), "globalStrides is not below 2^40");
  EXPECT_EQ(why([](A& a) { a.strides[0] = 96; }), "globalStrides is less than what lies in it");
  EXPECT_EQ(why([](A& a) { a.box[1] = 0; }), "boxDim is not from 1 to 256");
  EXPECT_EQ(why([](A& a) { a.box[1] = 257; }), "boxDim is not from 1 to 256");
  EXPECT_EQ(why([](A& a) { a.box[1] = 256; }), "");
  EXPECT_EQ(why([](A& a) { a.box[0] = 120; }), "boxDim's inner side is not a multiple of 16 bytes");
  EXPECT_EQ(why([](A& a) { a.box[0] = 144; }), "boxDim's inner side is longer than the swizzle");
  EXPECT_EQ(why([](A& a) { a.element_strides[1] = 0; }), "elementStrides is not from 1 to 8");
  EXPECT_EQ(why([](A& a) { a.element_strides[1] = 9; }), "elementStrides is not from 1 to 8");
  EXPECT_EQ(why([](A& a) { a.interleave = 3; }), "interleave is none of the layouts");
  EXPECT_EQ(why([](A& a) { a.swizzle = 7; }), "swizzle is none of the patterns");
  EXPECT_EQ(why([](A& a) { a.l2_promotion = 4; }), "l2Promotion is none of the sizes");
  EXPECT_EQ(why([](A& a) { a.oob_fill = 2; }), "oobFill is none of the constants");
  EXPECT_NE(why([](A& a) { a.oob_fill = 1; }), "");
  EXPECT_NE(why([](A& a) { a.rank = 3; }), "");
  EXPECT_NE(why([](A& a) { a.swizzle = 2; }), "");
  std::memset(map, 0, sizeof map);
  EXPECT_FALSE(read_map(map).has_value());
}

constexpr uint32_t kRows = 300, kColumns = 20, kPitch = 304;
constexpr uint32_t kBoxColumns = 16, kBoxBytes = 128 * kBoxColumns;
constexpr size_t kShared = 2 * kBoxBytes + 64;

void expect_fault(const std::string& part, const std::function<void()>& kernel, dim3 block = 32,
                  size_t shared = kShared) {
  expect_error(part, kernel, block, shared);
}

const Memory<uint8_t>& matrix() {
  static const Memory<uint8_t> bytes = [] {
    Memory<uint8_t> made(kPitch * kColumns);
    SeededRandom random(901);
    for (uint8_t& byte : made) byte = random.byte();
    return made;
  }();
  return bytes;
}
TensorMap matrix_map(BoxSwizzle swizzle = BoxSwizzle::k128) {
  return map_of(matrix().data(), {{kRows, kColumns}, kPitch, {128, kBoxColumns}, swizzle});
}
uint64_t* barrier_at(uint32_t number) {
  return reinterpret_cast<uint64_t*>(dynamic_shared_memory() + 2 * kBoxBytes) + number;
}
// Thread 0 makes barriers, and all know of them.
void make_barriers(uint32_t arrivals, uint32_t count = 1) {
  if (threadIdx.x == 0) {
    for (uint32_t i = 0; i < count; ++i) init_barrier(barrier_at(i), arrivals);
    publish_barriers();
  }
  __syncthreads();
}
// The n-th box of shared memory.
uint8_t* box_at(uint32_t number) { return dynamic_shared_memory() + number * kBoxBytes; }

// PTX ISA, "Tensor", "Out of bounds access" and "Swizzling modes": element (x, y) of the box is
// element (row + x, column + y) of the matrix, or zero; by hand, chunk c of the box's row y lies at
// chunk c xor (y mod 8).
TEST(TensorCopies, BringBoxesWithZerosOutside) {
  struct Place {
    int row, column;
  };
  for (const BoxSwizzle swizzle : {BoxSwizzle::k128, BoxSwizzle::kNone}) {
    const TensorMap map = matrix_map(swizzle);
    for (const Place place : {Place{0, 0}, {128, 3}, {256, 16}, {-64, -5}, {400, 0}, {13, 17}}) {
      std::vector<uint8_t> seen(kBoxBytes);
      launch(1, 32, kShared, [&] {
        make_barriers(1);
        if (threadIdx.x == 0) {
          arrive_and_expect(barrier_at(0), kBoxBytes);
          copy_box(box_at(1), &map, static_cast<uint32_t>(place.row),
                   static_cast<uint32_t>(place.column), barrier_at(0), evict_first_policy());
        }
        wait_for_phase(barrier_at(0), 0);
        if (threadIdx.x == 7) std::memcpy(seen.data(), box_at(1), kBoxBytes);
      });
      for (int y = 0; y < int{kBoxColumns}; ++y) {
        for (int x = 0; x < 128; ++x) {
          const int row = place.row + x, column = place.column + y;
          const bool inside = row >= 0 && row < int{kRows} && column >= 0 && column < int{kColumns};
          const int chunk = swizzle == BoxSwizzle::kNone ? x / 16 : (x / 16) ^ (y % 8);
          ASSERT_EQ(seen[static_cast<size_t>(y * 128 + chunk * 16 + x % 16)],
                    inside ? matrix()[static_cast<uint64_t>(column * int{kPitch} + row)] : 0)
              << x << ' ' << y << " of " << place.row << ' ' << place.column;
        }
      }
    }
  }
}

// As late as can be, one after the other.
TEST(TensorCopies, ComeLate) {
  const TensorMap map = matrix_map(BoxSwizzle::kNone);
  std::string steps;
  launch(1, 32, kShared, [&] {
    make_barriers(1, 2);
    if (threadIdx.x != 0) return;
    const auto look = [&] {
      for (const uint32_t i : {0, 1}) {
        steps += std::memcmp(box_at(i), matrix().data(), 128) == 0 ? '1' : '-';
      }
      steps += ' ';
    };
    for (const uint32_t i : {0, 1}) {
      arrive_and_expect(barrier_at(i), kBoxBytes);
      copy_box(box_at(i), &map, 0, 0, barrier_at(i));
      look();
    }
    wait_for_phase(barrier_at(0), 0);
    look();
    wait_for_phase(barrier_at(1), 0);
    look();
  });
  EXPECT_EQ(steps, "-- -- 1- 11 ");
}

// PTX ISA, "mbarrier.test_wait": parity 0 is that of phases 0, 2, ...; a wait for the phase before
// the current one is over at once.
TEST(TensorCopies, PhasesAlternate) {
  std::string order;
  launch(1, 64, kShared, [&] {
    make_barriers(2);
    wait_for_phase(barrier_at(0), 1);  // the one before the first
    __syncthreads();
    for (const uint32_t phase : {0, 1, 2}) {
      if (threadIdx.x != 3 && threadIdx.x != 40) break;
      order += threadIdx.x == 3 ? 'a' : 'b';
      arrive(barrier_at(0));
      wait_for_phase(barrier_at(0), phase % 2);
      order += static_cast<char>('0' + phase);
    }
  });
  // Each phase is over for both only when both have arrived in it.
  ASSERT_EQ(order.size(), 12u);
  for (const size_t phase : {0, 1, 2}) {
    const char digit = static_cast<char>('0' + phase);
    const std::string before = order.substr(0, order.find(digit));
    EXPECT_GT(std::ranges::count(before, 'a'), static_cast<ptrdiff_t>(phase)) << order;
    EXPECT_GT(std::ranges::count(before, 'b'), static_cast<ptrdiff_t>(phase)) << order;
  }
}

TEST(TensorCopies, RefuseBarriersThatAreWrong) {
  expect_fault("init_barrier of 0 arrivals", [] { init_barrier(barrier_at(0), 0); });
  expect_fault("init_barrier of 1048576 arrivals", [] { init_barrier(barrier_at(0), 1 << 20); });
  expect_fault("not a multiple of 8", [] {
    init_barrier(reinterpret_cast<uint64_t*>(reinterpret_cast<uint8_t*>(barrier_at(0)) + 4), 1);
  });
  expect_fault("where a barrier is", [] { init_barrier(barrier_at(0), 1); });
  expect_fault("where no barrier is", [] { arrive(barrier_at(0)); });
  expect_fault("where all have arrived in this phase", [] {
    make_barriers(1);
    if (threadIdx.x != 5) return;
    arrive_and_expect(barrier_at(0), 16);
    arrive(barrier_at(0));
  });
  expect_fault("more than 2^20 - 1 bytes", [] {
    make_barriers(3);
    if (threadIdx.x != 5) return;
    arrive_and_expect(barrier_at(0), (1 << 20) - 1);
    arrive_and_expect(barrier_at(0), 1);
  });
  expect_fault("wait_for_phase of parity 2", [] {
    make_barriers(1);
    wait_for_phase(barrier_at(0), 2);
  });
  expect_fault("for phase 0 of barrier 0, where 1 arrivals and 0 bytes are missing", [] {
    make_barriers(2);
    if (threadIdx.x == 0) arrive(barrier_at(0));
    wait_for_phase(barrier_at(0), 0);
  });
}

// One thread copies `boxes` boxes as it is told.
void copy_as_told(const TensorMap& map, uint32_t expected, uint32_t boxes = 1) {
  make_barriers(1);
  if (threadIdx.x == 0) {
    arrive_and_expect(barrier_at(0), expected);
    for (uint32_t i = 0; i < boxes; ++i) copy_box(box_at(i), &map, 0, 0, barrier_at(0));
  }
  wait_for_phase(barrier_at(0), 0);
}

TEST(TensorCopies, RefuseCopiesThatAreWrong) {
  const TensorMap map = matrix_map();
  expect_fault("", [&] { copy_as_told(map, kBoxBytes); });
  expect_fault("", [&] { copy_as_told(map, 2 * kBoxBytes, 2); });
  // Bytes that never come, and bytes that were not expected: too early complete, or too many.
  expect_fault("where 0 arrivals and 16 bytes are missing",
               [&] { copy_as_told(map, kBoxBytes + 16); });
  expect_fault("a box brings 2048 bytes to a barrier that expects 2032",
               [&] { copy_as_told(map, kBoxBytes - 16); });
  expect_fault("a block ended with a box on its way", [&] {
    make_barriers(1);
    if (threadIdx.x != 0) return;
    arrive_and_expect(barrier_at(0), kBoxBytes);
    copy_box(box_at(0), &map, 0, 0, barrier_at(0));
  });
  const auto copy = [&](const std::function<void()>& copies) {
    return [&, copies] {
      make_barriers(1);
      if (threadIdx.x != 0) return;
      arrive_and_expect(barrier_at(0), kBoxBytes);
      copies();
      wait_for_phase(barrier_at(0), 0);
    };
  };
  expect_fault("which is not a multiple of 1024",
               copy([&] { copy_box(box_at(0) + 128, &map, 0, 0, barrier_at(0)); }));
  const TensorMap plain = matrix_map(BoxSwizzle::kNone);
  expect_fault("", copy([&] { copy_box(box_at(0) + 128, &plain, 0, 0, barrier_at(0)); }));
  expect_fault("which is not a multiple of 128",
               copy([&] { copy_box(box_at(0) + 64, &plain, 0, 0, barrier_at(0)); }));
  expect_fault("which is outside of the block's",
               copy([&] { copy_box(box_at(1) + 1024, &map, 0, 0, barrier_at(0)); }));
  expect_fault("copy_box to where a barrier is",
               copy([&] { copy_box(box_at(2), &map, 0, 0, barrier_at(0)); }), 32, 8192);
  expect_fault("where no barrier is",
               copy([&] { copy_box(box_at(0), &map, 0, 0, barrier_at(1)); }));
  expect_fault("that evict_first_policy() did not make",
               copy([&] { copy_box(box_at(0), &map, 0, 0, barrier_at(0), 5); }));
  const TensorMap none{};
  expect_fault("that cuTensorMapEncodeTiled did not make",
               copy([&] { copy_box(box_at(0), &none, 0, 0, barrier_at(0)); }));
  // By the thread that made the barrier, but not seen by the accelerator.
  expect_fault("that publish_barriers() did not publish", [&] {
    if (threadIdx.x != 0) return;
    init_barrier(barrier_at(0), 1);
    arrive_and_expect(barrier_at(0), kBoxBytes);
    copy_box(box_at(0), &map, 0, 0, barrier_at(0));
  });
}

// PTX ISA, "setmaxnreg": of all warps of a warpgroup; more waits until there are this many in the
// block's pool. By hand: 256 threads have 256 registers each, 384 have 168.
TEST(TensorCopies, RegistersAreHandedOn) {
  const auto change = [](unsigned low, unsigned high) {
    return [=] {
      if (threadIdx.x < 128) {
        runtime::set_registers(low, false, {});
      } else {
        runtime::set_registers(high, true, {});
      }
      __syncwarp();
    };
  };
  expect_fault("", change(40, 232), 384);
  expect_fault("for registers", change(40, 240), 384);
  expect_fault("take_registers of 160, and a thread has 168", change(40, 160), 384);
  expect_fault("give_up_registers of 176, and a thread has 168", change(176, 232), 384);
  expect_fault(
      "setmaxnreg of some warps of a warpgroup",
      [] {
        if (threadIdx.x < 96) give_up_registers<40>();
      },
      384);
  expect_fault(
      "of its warp in",
      [] {
        if (threadIdx.x % 32 < 16) {
          give_up_registers<40>();
        } else {
          __syncwarp();
        }
      },
      384);
}

}  // namespace
}  // namespace blindfuse::emulator
