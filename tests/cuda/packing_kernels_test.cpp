// The CUDA kernels that pack responses, run by the emulator, against plain loops, in every order
// that a GPU may choose.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/ring/modulus_switch.h"
#include "src/arithmetic/ring/ntt.h"
#include "tests/cuda/emulator.h"
#include "tests/cuda/host_ring.h"
#include "tests/cuda/kernel_support.h"
#include "tests/cuda/sum_problem.h"
#include "tests/support.h"

#include "cuda/packing/kernels/cut_keys.cuh"
#include "cuda/packing/kernels/cut_table.cuh"
#include "cuda/packing/kernels/finish_packs.cuh"
#include "cuda/packing/kernels/sum_points.cuh"

namespace blindfuse {
namespace {

using emulator::HostRing;
using emulator::kSchedules;
using emulator::launch;
using emulator::launch_with;
using emulator::Memory;
using emulator::plane_byte;
using emulator::Schedule;
using emulator::SumProblem;
using emulator::table_byte;
using support::SeededRandom;

TEST(PackingKernels, CutTablesAsTheSumsWantThem) {
  SeededRandom random(530);
  constexpr uint32_t kGroup = 2, kPack = 9, kPacks = 11;
  constexpr uint64_t kPointBytes = 2 * kTileBytes;
  const std::vector<uint32_t> words = random.words(2 * kGroupWords);
  // Of the points up to the last that is cut.
  const Memory<uint8_t> tables((kGroup + 2) * 16 * kPointBytes);
  launch(dim3(kSumSteps / kStepsInBlock, 2), kCutTableThreads, 0, cut_table,
         CutTableArgs{words.data(), kGroup, kPack, kPacks, tables.data()});

  std::vector<uint8_t> expected((kGroup + 2) * 16 * kPointBytes, uint8_t{0xa5});
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t point = kGroup * 16 + i;
    const auto word = [&](size_t number, size_t digit) {
      return words[table_place(i / 16, number, digit) + i % 16];
    };
    for (uint32_t digit = 0; digit < 3; ++digit) {
      for (uint32_t power = 0; power < 1024; ++power) {
        // Down the powers of 5.
        const uint32_t cut = power < 1023 ? word(1022 - power, digit) : 0;
        for (uint32_t limb = 0; limb < 4; ++limb) {
          expected[point * kPointBytes + table_byte(kPack, digit, power, limb)] =
              static_cast<uint8_t>(cut >> 8 * limb);
        }
      }
    }
  }
  EXPECT_TRUE(std::ranges::equal(tables, expected));
}

TEST(PackingKernels, CutKeysIntoWindowsOfAnyPlace) {
  SeededRandom random(531);
  constexpr uint32_t kQueries = 3;
  constexpr uint64_t kPitch = ring::kKeyWords + 5;
  const std::vector<uint32_t> keys = random.words(kQueries * kPitch);
  const Memory<uint8_t> planes(kQueries * kQueryPlaneBytes);
  launch(dim3(6, kQueries), kCutKeysThreads, 0, cut_keys,
         CutKeysArgs{keys.data(), kPitch, planes.data()});
  for (uint32_t q = 0; q < kQueries; ++q) {
    for (uint32_t row = 0; row < 6; ++row) {
      for (uint32_t copy = 0; copy < 4; ++copy) {
        for (uint32_t i = 0; i < kPlaneBytes; ++i) {
          const uint32_t word = keys[q * kPitch + row * 1024 + (i + copy) % 1024];
          for (uint32_t limb = 0; limb < 4; ++limb) {
            ASSERT_EQ(planes[plane_byte(q, row / 2, row % 2, limb, copy, i)],
                      static_cast<uint8_t>(word >> 8 * limb))
                << q << ' ' << row << ' ' << copy << ' ' << i << ' ' << limb;
          }
        }
      }
    }
  }
}

template <uint32_t kQueryTiles, uint32_t kPackTiles>
void expect_sums(const SumProblem& problem, const Schedule& schedule, uint32_t set_count,
                 uint32_t first_tile = 0) {
  SumArgs args = problem.args();
  args.first_tile = first_tile;
  const dim3 grid((args.query_count - 1) / (16 * kQueryTiles) + 1,
                  (pack_tiles(args.pack_count) - first_tile) / kPackTiles, set_count);
  const auto report =
      launch_with(schedule, grid, kSumThreads, sum_shared_bytes<kQueryTiles, kPackTiles>(),
                  sum_points<kQueryTiles, kPackTiles>, args);
  EXPECT_EQ(report.bank_conflicts, 0u);
}

// Windows that begin with the first word of a half, and such as run over its end.
TEST(PackingKernels, SumAtThePointsOfASet) {
  SeededRandom random(532);
  const uint32_t sets[] = {0, 127, 130, 255};
  for (size_t i = 0; i < std::size(sets); ++i) {
    const SumProblem problem(random, 3, 5, sets[i], 1);
    expect_sums<1, 1>(problem, kSchedules[i], 1);
    problem.expect_right();
  }
  const SumProblem problem(random, 1, 2, 61, 3);
  expect_sums<1, 1>(problem, {}, 3);
  problem.expect_right();
}

TEST(PackingKernels, NothingThatSumsWaitForCanBeLeftOut) {
  SeededRandom random(534);
  const SumProblem problem(random, 1, 2, 61, 1);
  for (Schedule schedule : kSchedules) {
    for (const auto omitted : {emulator::Step::kCopyWait, emulator::Step::kBlockBarrier}) {
      schedule.omitted = omitted;
      EXPECT_THROW((expect_sums<1, 1>(problem, schedule, 1)), std::logic_error)
          << static_cast<int>(omitted);
    }
  }
}

template <uint32_t kQueryTiles, uint32_t kPackTiles>
void expect_sums(SeededRandom& random, uint32_t queries, uint32_t packs) {
  const SumProblem problem(random, queries, packs, static_cast<uint32_t>(random.below(kPointSets)),
                           1);
  for (const Schedule& schedule : {kSchedules[0], kSchedules[random.between(1, 3)]}) {
    expect_sums<kQueryTiles, kPackTiles>(problem, schedule, 1);
    problem.expect_right();
  }
}

TEST(PackingKernels, SumForAnyNumberOfQueriesAndPacks) {
  SeededRandom random(533);
  expect_sums<1, 1>(random, 1, 1);
  expect_sums<1, 1>(random, 16, 8);
  expect_sums<1, 2>(random, 2, 9);
  expect_sums<2, 1>(random, 17, 3);
  expect_sums<2, 2>(random, 33, 16);
}

// A tile of packs by itself after a pair.
TEST(PackingKernels, SumForTheLastTileOfPacks) {
  SeededRandom random(536);
  const SumProblem problem(random, 3, 17, 99, 1);
  expect_sums<1, 2>(problem, {}, 1);
  expect_sums<1, 1>(problem, {}, 1, 2);
  problem.expect_right();
}

// No accumulator wraps, and what they hold together is reduced all the way.
TEST(PackingKernels, SumTheLargestWords) {
  SeededRandom random(535);
  SumProblem problem(random, 1, 1, 127, 1);
  for (const uint32_t word : {ring::kPackingModulus - 1, 0xffffffffu}) {
    problem.fill_with(word);
    expect_sums<1, 1>(problem, {}, 1);
    problem.expect_right();
  }
}

// What the host's ResponsePacker and write_bit_sequence() make of the same.
std::vector<uint8_t> finished(const FinishArgs& args, uint32_t query) {
  const ring::PrimeField field(ring::kPackingModulus);
  const auto ntt = ring::portable_ntt(ring::kPackingModulus);
  std::vector<uint32_t> lowered, body(2048);
  for (uint32_t pack = 0; pack < args.pack_count; ++pack) {
    std::copy_n(args.sums + (query * args.pack_count + pack) * 2048, 2048, body.begin());
    ntt->inverse(ring::MutablePolynomial(body.data(), 2048));
    for (uint32_t c = 0; c < 1024 && pack * 1024 + c < args.column_count; ++c) {
      const uint32_t product = args.products[query * args.product_pitch + pack * 1024 + c];
      const uint32_t word = field.subtract(ring::switch_to_q(product), body[c]);
      lowered.push_back(restore_word(ring::switch_from_q(word, args.bits), args.bits));
    }
  }
  std::vector<uint8_t> packed(bit_sequence_bytes(args.column_count, args.bits));
  write_bit_sequence(lowered, args.bits, packed);
  return packed;
}

TEST(PackingKernels, FinishResponsesOfEveryWidth) {
  SeededRandom random(534);
  const HostRing ring;
  constexpr uint32_t kQueries = 2, kPacks = 2;
  const Memory<uint32_t> sums(kQueries * kPacks * 2048);
  for (uint32_t& sum : sums) sum = static_cast<uint32_t>(random.below(ring::kPackingModulus));
  for (uint32_t bits = 1; bits <= 32; ++bits) {
    const auto columns = static_cast<uint32_t>(random.between(1025, 2048));
    const Memory<uint32_t> products(kQueries * columns);
    for (uint32_t& product : products) product = random.u32();
    const uint64_t pitch = kPacks * 32 * bits;
    const Memory<uint32_t> packed(kQueries * pitch);
    const FinishArgs args{ring.view(), sums.data(), products.data(), columns, columns,
                          kPacks,      bits,        packed.data(),   pitch};
    launch_with(kSchedules[bits % 4], dim3(kPacks, kQueries), kNttThreads, kFinishSharedBytes,
                finish_packs, args);
    for (uint32_t q = 0; q < kQueries; ++q) {
      const std::vector<uint8_t> expected = finished(args, q);
      ASSERT_EQ(std::memcmp(packed.data() + q * pitch, expected.data(), expected.size()), 0)
          << bits << " bits, " << columns << " columns, query " << q;
      // What is left of the last pack's words is zero, like the last byte's unused bits.
      const auto* bytes = reinterpret_cast<const uint8_t*>(packed.data() + q * pitch);
      EXPECT_TRUE(std::all_of(bytes + expected.size(), bytes + 4 * pitch,
                              [](uint8_t byte) { return byte == 0; }));
    }
  }
}

}  // namespace
}  // namespace blindfuse
