// What the emulator of CUDA has of the tensor memory accelerator, of barriers with phases and of
// products of two operands in shared memory: against the PTX ISA's and cuda.h's words, and every
// mistake of a kernel that it is there to find.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/cuda/emulator.h"
#include "tests/cuda/kernel_support.h"
#include "tests/cuda/tensor_maps.h"
#include "tests/support.h"

namespace blindfuse::tensor_copies {
namespace {

using emulator::kSchedules;
using emulator::launch_with;
using emulator::Memory;
using emulator::Schedule;
using emulator::Step;
using emulator::TensorMapArguments;
using support::SeededRandom;

TensorMap map_of(const void* bytes, const TensorShape& shape) {
  TensorMap map;
  const std::string why = emulator::make_map(&map, emulator::arguments_for(bytes, shape));
  if (!why.empty()) throw std::logic_error(why);
  return map;
}

std::string error_of(const Schedule& schedule, unsigned threads, size_t shared,
                     const std::function<void()>& kernel) {
  try {
    launch_with(schedule, 1, threads, shared, kernel);
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "no error";
}

// In every order that a GPU may choose.
void expect_errors(const std::string& part, unsigned threads, size_t shared,
                   const std::function<void()>& kernel) {
  for (const Schedule& schedule : kSchedules) {
    const std::string message = error_of(schedule, threads, shared, kernel);
    EXPECT_NE(message.find(part), std::string::npos) << part << ": " << message;
  }
}

TEST(TensorMaps, AreRefusedForEachRequirementOfTheDriver) {
  alignas(64) static const uint8_t bytes[4096] = {};
  const TensorMapArguments good =
      emulator::arguments_for(bytes, {{100, 7}, 112, {128, 8}, BoxSwizzle::k128});
  alignas(64) uint8_t map[128 + 64];
  EXPECT_EQ(emulator::make_map(map, good), "");
  EXPECT_NE(emulator::make_map(map + 16, good), "");
  const auto why = [&](auto change) {
    TensorMapArguments arguments = good;
    change(arguments);
    return emulator::make_map(map, arguments);
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
  EXPECT_THROW(emulator::read_map(map), std::logic_error);
}

constexpr uint32_t kRows = 300, kColumns = 20, kPitch = 304;
constexpr uint32_t kBoxColumns = 16, kBoxBytes = 128 * kBoxColumns;
constexpr size_t kShared = 2 * kBoxBytes + 64;

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
  for (const Schedule& schedule : kSchedules) {
    for (const BoxSwizzle swizzle : {BoxSwizzle::k128, BoxSwizzle::kNone}) {
      const TensorMap map = matrix_map(swizzle);
      for (const Place place : {Place{0, 0}, {128, 3}, {256, 16}, {-64, -5}, {400, 0}, {13, 17}}) {
        std::vector<uint8_t> seen(kBoxBytes);
        launch_with(schedule, 1, 32, kShared, [&] {
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
            const bool inside =
                row >= 0 && row < int{kRows} && column >= 0 && column < int{kColumns};
            const int chunk = swizzle == BoxSwizzle::kNone ? x / 16 : (x / 16) ^ (y % 8);
            ASSERT_EQ(seen[static_cast<size_t>(y * 128 + chunk * 16 + x % 16)],
                      inside ? matrix()[static_cast<uint64_t>(column * int{kPitch} + row)] : 0)
                << x << ' ' << y << " of " << place.row << ' ' << place.column;
          }
        }
      }
    }
  }
}

// As late as can be, one after the other, or at once.
TEST(TensorCopies, ComeLateOrAtOnce) {
  const TensorMap map = matrix_map(BoxSwizzle::kNone);
  const auto observe = [&](Schedule schedule) {
    std::string steps;
    launch_with(schedule, 1, 32, kShared, [&] {
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
    return steps;
  };
  EXPECT_EQ(observe({.backward = false, .early_copies = false}), "-- -- 1- 11 ");
  EXPECT_EQ(observe({.backward = true, .early_copies = false}), "-- -- 11 11 ");
  EXPECT_EQ(observe({.backward = false, .early_copies = true}), "1- 11 11 11 ");
}

// PTX ISA, "mbarrier.test_wait": parity 0 is that of phases 0, 2, ...; a wait for the phase before
// the current one is over at once.
TEST(TensorCopies, PhasesAlternate) {
  for (const Schedule& schedule : kSchedules) {
    std::string order;
    launch_with(schedule, 1, 64, kShared, [&] {
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
}

TEST(TensorCopies, FindsBarriersThatAreWrong) {
  expect_errors("init_barrier of 0 arrivals", 32, kShared, [] { init_barrier(barrier_at(0), 0); });
  expect_errors("init_barrier of 1048576 arrivals", 32, kShared,
                [] { init_barrier(barrier_at(0), 1 << 20); });
  expect_errors("not a multiple of 8", 32, kShared, [] {
    init_barrier(reinterpret_cast<uint64_t*>(reinterpret_cast<uint8_t*>(barrier_at(0)) + 4), 1);
  });
  expect_errors("where a barrier is", 32, kShared, [] { init_barrier(barrier_at(0), 1); });
  expect_errors("where no barrier is", 32, kShared, [] { arrive(barrier_at(0)); });
  expect_errors("which publish_barriers() did not publish", 32, kShared, [] {
    if (threadIdx.x == 0) init_barrier(barrier_at(0), 1);
    __syncthreads();
    arrive(barrier_at(0));
  });
  expect_errors("published with no barrier of the block since", 32, kShared, [] {
    if (threadIdx.x == 0) {
      init_barrier(barrier_at(0), 64);
      publish_barriers();
    }
    __syncwarp();
    arrive(barrier_at(0));
  });
  expect_errors("where all have arrived in this phase", 32, kShared, [] {
    make_barriers(1);
    if (threadIdx.x != 5) return;
    arrive_and_expect(barrier_at(0), 16);
    arrive(barrier_at(0));
  });
  expect_errors("expects more than 2^20 - 1 bytes", 32, kShared, [] {
    make_barriers(3);
    if (threadIdx.x != 5) return;
    arrive_and_expect(barrier_at(0), (1 << 20) - 1);
    arrive_and_expect(barrier_at(0), 1);
  });
  expect_errors("wait_for_phase of parity 2", 32, kShared, [] {
    make_barriers(1);
    wait_for_phase(barrier_at(0), 2);
  });
  expect_errors(
      "dead locked: 32 threads waiting for phase 0 of the barrier at byte 4096, where 1 arrivals "
      "and 0 bytes are missing",
      32, kShared, [] {
        make_barriers(2);
        if (threadIdx.x == 0) arrive(barrier_at(0));
        wait_for_phase(barrier_at(0), 0);
      });
  // The wrong parity: that of a phase that no thread completes.
  expect_errors("waiting for phase 1", 32, kShared, [] {
    make_barriers(1);
    if (threadIdx.x == 0) arrive(barrier_at(0));
    wait_for_phase(barrier_at(0), 0);
    wait_for_phase(barrier_at(0), 1);
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
  if (threadIdx.x == 0) (void)load_shared_16(box_at(boxes - 1));
}

TEST(TensorCopies, FindsCopiesThatAreWrong) {
  const TensorMap map = matrix_map();
  expect_errors("no error", 32, kShared, [&] { copy_as_told(map, kBoxBytes); });
  expect_errors("no error", 32, kShared, [&] { copy_as_told(map, 2 * kBoxBytes, 2); });
  // Bytes that never come, and bytes that were not expected: too early complete, or too many.
  expect_errors("0 arrivals and 16 bytes are missing", 32, kShared,
                [&] { copy_as_told(map, kBoxBytes + 16); });
  expect_errors("brings 2048 bytes to the barrier at byte 4096, which expects 2032", 32, kShared,
                [&] { copy_as_told(map, kBoxBytes - 16); });
  for (const Schedule& schedule : kSchedules) {
    EXPECT_NE(error_of(schedule, 32, kShared, [&] { copy_as_told(map, kBoxBytes, 2); }),
              "no error");
  }
  const auto copy = [&](const std::function<void()>& copies) {
    return [&, copies] {
      make_barriers(1);
      if (threadIdx.x != 0) return;
      arrive_and_expect(barrier_at(0), kBoxBytes);
      copies();
      wait_for_phase(barrier_at(0), 0);
    };
  };
  expect_errors("which is not a multiple of 1024", 32, kShared,
                copy([&] { copy_box(box_at(0) + 128, &map, 0, 0, barrier_at(0)); }));
  const TensorMap plain = matrix_map(BoxSwizzle::kNone);
  expect_errors("no error", 32, kShared,
                copy([&] { copy_box(box_at(0) + 128, &plain, 0, 0, barrier_at(0)); }));
  expect_errors("which is not a multiple of 128", 32, kShared,
                copy([&] { copy_box(box_at(0) + 64, &plain, 0, 0, barrier_at(0)); }));
  expect_errors("copy_box beyond shared memory", 32, kShared,
                copy([&] { copy_box(box_at(1) + 1024, &map, 0, 0, barrier_at(0)); }));
  expect_errors("copy_box to where a barrier is", 32, 8192,
                copy([&] { copy_box(box_at(2), &map, 0, 0, barrier_at(0)); }));
  expect_errors("where no barrier is", 32, kShared,
                copy([&] { copy_box(box_at(0), &map, 0, 0, barrier_at(1)); }));
  expect_errors("that evict_first_policy() did not make", 32, kShared,
                copy([&] { copy_box(box_at(0), &map, 0, 0, barrier_at(0), 5); }));
  const TensorMap none{};
  expect_errors("that cuTensorMapEncodeTiled did not make", 32, kShared,
                copy([&] { copy_box(box_at(0), &none, 0, 0, barrier_at(0)); }));
  // By the thread that made the barrier, but not seen by the accelerator.
  expect_errors("which publish_barriers() did not publish", 32, kShared, [&] {
    if (threadIdx.x != 0) return;
    init_barrier(barrier_at(0), 1);
    arrive_and_expect(barrier_at(0), kBoxBytes);
    copy_box(box_at(0), &map, 0, 0, barrier_at(0));
  });
}

TEST(TensorCopies, FindsReadsThatDoNotWait) {
  const TensorMap map = matrix_map();
  const auto read = [&](bool waits, bool of_right_phase) {
    return [&map, waits, of_right_phase] {
      make_barriers(1, 2);
      if (threadIdx.x == 0) {
        arrive(barrier_at(1));
        arrive_and_expect(barrier_at(0), kBoxBytes);
        copy_box(box_at(0), &map, 0, 0, barrier_at(0));
        wait_for_phase(barrier_at(0), 0);
      }
      if (threadIdx.x == 9 && waits) wait_for_phase(barrier_at(of_right_phase ? 0 : 1), 0);
      if (threadIdx.x == 9) (void)load_shared_16(box_at(0) + 1024);
    };
  };
  expect_errors("no error", 32, kShared, read(true, true));
  // Before the copy in some orders, while it is on its way in others, or with no wait after it.
  for (const Schedule& schedule : kSchedules) {
    if (schedule.backward) continue;
    EXPECT_NE(error_of(schedule, 32, kShared, read(false, false)), "no error");
    EXPECT_NE(error_of(schedule, 32, kShared, read(true, false)), "no error");
  }
  // A barrier of the block hands on what one thread has waited for.
  expect_errors("no error", 32, kShared, [&map] {
    make_barriers(1);
    if (threadIdx.x == 0) {
      arrive_and_expect(barrier_at(0), kBoxBytes);
      copy_box(box_at(0), &map, 0, 0, barrier_at(0));
      wait_for_phase(barrier_at(0), 0);
    }
    __syncthreads();
    (void)load_shared_16(box_at(0));
  });
  const auto twice = [&](bool waits) {
    return [&map, waits] {
      make_barriers(1);
      if (threadIdx.x != 0) return;
      for (const uint32_t round : {0, 1}) {
        arrive_and_expect(barrier_at(0), kBoxBytes);
        copy_box(box_at(0), &map, 0, 0, barrier_at(0));
        if (waits) wait_for_phase(barrier_at(0), round);
      }
    };
  };
  expect_errors("no error", 32, kShared, twice(true));
  EXPECT_NE(error_of({}, 32, kShared, twice(false)), "no error");
  EXPECT_NE(error_of({}, 32, kShared,
                     [&] {
                       make_barriers(1);
                       if (threadIdx.x != 0) return;
                       arrive_and_expect(barrier_at(0), kBoxBytes);
                       copy_box(box_at(0), &map, 0, 0, barrier_at(0));
                     })
                .find("ended with 1 boxes on their way"),
            std::string::npos);
}

// 64 x 32 times 32 x 32, both in shared memory with the 128-byte swizzle, from byte `first` of each
// row on.
void expect_shared_product(SeededRandom& random, uint32_t first, const Schedule& schedule) {
  std::vector<uint8_t> rows(96 * 128);
  for (uint8_t& byte : rows) byte = random.byte();
  std::vector<uint32_t> sums(64 * 32);
  launch_with(schedule, 1, 128, 96 * 128, [&] {
    for (uint32_t i = threadIdx.x; i < 96 * 128; i += 128) {
      const uint32_t row = i / 128, chunk = i % 128 / 16;
      dynamic_shared_memory()[row * 128 + (chunk ^ row % 8) * 16 + i % 16] = rows[i];
    }
    publish_shared();
    __syncthreads();
    int32_t mine[16] = {};
    wgmma_fence();
    wgmma_s8_s8_shared<32>(mine, operand_descriptor(dynamic_shared_memory() + first),
                           operand_descriptor(dynamic_shared_memory() + 64 * 128 + first));
    wgmma_commit();
    wgmma_wait();
    // PTX ISA, "Register fragments for wgmma.m64nNk32", D.
    for (uint32_t i = 0; i < 16; ++i) {
      const uint32_t lane = threadIdx.x % 32;
      const uint32_t row = threadIdx.x / 32 * 16 + lane / 4 + i / 2 % 2 * 8;
      sums[row * 32 + i / 4 * 8 + lane % 4 * 2 + i % 2] = static_cast<uint32_t>(mine[i]);
    }
  });
  for (uint32_t m = 0; m < 64; ++m) {
    for (uint32_t n = 0; n < 32; ++n) {
      int32_t sum = 0;
      for (uint32_t k = first; k < first + 32; ++k) {
        sum +=
            static_cast<int8_t>(rows[m * 128 + k]) * static_cast<int8_t>(rows[(64 + n) * 128 + k]);
      }
      ASSERT_EQ(sums[m * 32 + n], static_cast<uint32_t>(sum)) << m << ' ' << n;
    }
  }
}

TEST(TensorCopies, MultiplyWhatLiesInSharedMemory) {
  SeededRandom random(902);
  for (const Schedule& schedule : kSchedules) {
    for (const uint32_t first : {0, 32, 64, 96}) expect_shared_product(random, first, schedule);
  }
}

// PTX ISA, "wgmma.wait_group": all groups but the last N are complete.
TEST(TensorCopies, WaitsForGroupsOfProducts) {
  std::string steps;
  launch_with({}, 1, 128, 12288, [&] {
    std::memset(dynamic_shared_memory(), 1, threadIdx.x == 0 ? 12288 : 0);
    publish_shared();
    __syncthreads();
    int32_t first[16] = {}, second[16] = {};
    const uint64_t a = operand_descriptor(dynamic_shared_memory());
    size_t looks = 0;
    // The thread that comes here first.
    const auto look = [&] {
      if (steps.size() != 2 * looks++) return;
      for (const int32_t sum : {first[3], second[3]}) steps += sum == 32 ? '1' : '-';
    };
    wgmma_fence();
    wgmma_s8_s8_shared<32>(first, a, descriptor_after(a, 64 * 128));
    wgmma_commit();
    wgmma_wait<1>();
    look();
    wgmma_fence();
    wgmma_s8_s8_shared<32>(second, a, descriptor_after(a, 64 * 128));
    wgmma_commit();
    wgmma_wait<1>();
    look();
    wgmma_wait();
    look();
  });
  EXPECT_EQ(steps, "--1-11");
}

// A warpgroup multiplies a box after the other, of two that a thread of another warpgroup brings;
// what a kernel may leave out or take for something else.
struct Mistakes {
  bool releases_too_early = false;
  bool expects_half = false;
  bool one_does_not_wait = false;
  uint32_t wrong_parity_from = 9;
  Step omitted = Step::kNone;
};
constexpr uint32_t kRounds = 6, kOperandColumns = 96, kOperandBytes = 128 * kOperandColumns;

void multiply_boxes(const TensorMap& map, const Mistakes& mistakes, int32_t* result) {
  uint8_t* const shared = dynamic_shared_memory();
  auto* const full = reinterpret_cast<uint64_t*>(shared + 2 * kOperandBytes);
  uint64_t* const empty = full + 2;
  if (threadIdx.x == 0) {
    for (uint32_t i = 0; i < 2; ++i) {
      init_barrier(full + i, 1);
      init_barrier(empty + i, 4);
    }
    publish_barriers();
  }
  __syncthreads();
  if (threadIdx.x < 128) {
    for (uint32_t round = 0; round < kRounds && threadIdx.x == 0; ++round) {
      const uint32_t parity = round / 2 % 2 ^ (round >= mistakes.wrong_parity_from ? 1 : 0);
      wait_for_phase(empty + round % 2, parity ^ 1);
      arrive_and_expect(full + round % 2, kOperandBytes / (mistakes.expects_half ? 2 : 1));
      copy_box(shared + round % 2 * kOperandBytes, &map, 128 * round, 0, full + round % 2);
    }
    return;
  }
  int32_t sums[16] = {};
  for (uint32_t round = 0; round < kRounds; ++round) {
    const uint32_t stage = round % 2;
    if (!mistakes.one_does_not_wait || threadIdx.x != 200 || round != 4) {
      wait_for_phase(full + stage, round / 2 % 2);
    }
    const uint64_t a = operand_descriptor(shared + stage * kOperandBytes);
    wgmma_fence();
    for (uint32_t k = 0; k < 128; k += 32) {
      wgmma_s8_s8_shared<32>(sums, descriptor_after(a, k), descriptor_after(a, 64 * 128 + k));
    }
    wgmma_commit();
    if (mistakes.releases_too_early && threadIdx.x % 32 == 0) arrive(empty + stage);
    wgmma_wait();
    if (!mistakes.releases_too_early && threadIdx.x % 32 == 0) arrive(empty + stage);
  }
  if (threadIdx.x == 128) *result = sums[0];
}

TEST(TensorCopies, FindsWhatAPipelineHasWrong) {
  Memory<uint8_t> bytes(128 * kRounds * kOperandColumns);
  SeededRandom random(903);
  for (uint8_t& byte : bytes) byte = random.byte();
  const TensorMap map = map_of(
      bytes.data(),
      {{128 * kRounds, kOperandColumns}, 128 * kRounds, {128, kOperandColumns}, BoxSwizzle::k128});
  const auto error = [&](const Mistakes& mistakes, Schedule schedule) {
    schedule.omitted = mistakes.omitted;
    int32_t result = 0;
    return error_of(schedule, 256, 2 * kOperandBytes + 32,
                    [&] { multiply_boxes(map, mistakes, &result); });
  };
  int32_t expected = 0;
  for (uint32_t r = 0; r < 128 * kRounds; ++r) {
    expected += static_cast<int8_t>(bytes[r]) * static_cast<int8_t>(bytes[64 * 128 * kRounds + r]);
  }
  for (const Schedule& schedule : kSchedules) {
    int32_t result = 0;
    launch_with(schedule, 1, 256, 2 * kOperandBytes + 32,
                [&] { multiply_boxes(map, {}, &result); });
    EXPECT_EQ(result, expected);
    EXPECT_NE(error({.releases_too_early = true}, schedule)
                  .find("which a product reads that not all have waited for"),
              std::string::npos);
    EXPECT_NE(error({.expects_half = true}, schedule).find("which expects 6144"),
              std::string::npos);
    EXPECT_NE(error({.one_does_not_wait = true}, schedule), "no error");
    EXPECT_NE(error({.wrong_parity_from = 2}, schedule), "no error");
    for (const Step omitted :
         {Step::kPublishBarriers, Step::kBlockBarrier, Step::kArrive, Step::kExpect,
          Step::kPhaseWait, Step::kWgmmaFence, Step::kWgmmaCommit, Step::kWgmmaWait}) {
      EXPECT_NE(error({.omitted = omitted}, schedule), "no error") << static_cast<int>(omitted);
    }
  }
}

// PTX ISA, "setmaxnreg": of all warps of a warpgroup; more waits until there are this many in the
// block's pool. By hand: 256 threads have 256 registers each, 384 have 168.
TEST(TensorCopies, RegistersAreHandedOn) {
  const auto change = [](unsigned low, unsigned high) {
    return [=] { emulator::set_registers(threadIdx.x < 128 ? low : high, threadIdx.x >= 128); };
  };
  expect_errors("no error", 384, 0, change(40, 232));
  expect_errors("1 threads waiting for registers", 384, 0, [] {
    emulator::set_registers(threadIdx.x < 128 ? 40 : 240, threadIdx.x >= 128);
    __syncwarp();
  });
  expect_errors("take_registers of 160, and a thread has 168", 384, 0, change(40, 160));
  expect_errors("give_up_registers of 176, and a thread has 168", 384, 0, change(176, 232));
  expect_errors("setmaxnreg of some warps of a warpgroup", 384, 0, [] {
    if (threadIdx.x < 96) give_up_registers<40>();
  });
  expect_errors("waits at", 384, 0, [] {
    if (threadIdx.x % 32 < 16) {
      give_up_registers<40>();
    } else {
      __syncwarp();
    }
  });
}

}  // namespace
}  // namespace blindfuse::tensor_copies
