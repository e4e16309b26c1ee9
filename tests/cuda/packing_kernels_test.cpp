// The CUDA kernels that pack responses, run by the emulator, against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>
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
#include "cuda/packing/kernels/point_sums.cuh"
#include "cuda/scan/kernels/scan_dp4a.cuh"
#include "cuda/scan/kernels/scan_mma.cuh"
#include "cuda/scan/kernels/scan_wgmma.cuh"

namespace blindfuse::emulator {
namespace {

using support::SeededRandom;

// Groups of points of the second half.
bool is_table_cut(uint32_t groups, const Options& options, Report& report) {
  SeededRandom random(530);
  constexpr uint32_t kGroup = 80, kPack = 1, kPacks = 3;
  const Memory<uint32_t> words(random.words(groups * kGroupWords));
  const Memory<int8_t> columns(tables_bytes(kPacks));
  std::vector<int8_t> expected(columns.begin(), columns.end());
  report =
      launch_with(options, dim3(kSumRows / kCutTableRows, groups), kCutTableThreads, 0, cut_table,
                  CutTableArgs{words.data(), kGroup, kPack, kPacks, columns.data()});
  for (uint32_t i = 0; i < groups * 16; ++i) {
    const uint32_t of_half = kGroup * 16 + i - 1024;
    const uint64_t first = ((uint64_t{kPacks} + kPack) * 1024 + of_half) * 4 * 3072;
    for (uint32_t digit = 0; digit < 3; ++digit) {
      for (uint32_t power = 0; power < 1024; ++power) {
        // Down the powers of 5.
        const uint32_t word =
            power < 1023 ? words[table_place(i / 16, 1022 - power, digit) + i % 16] : 0;
        const uint32_t row = digit * 1024 + (of_half + power) % 1024;
        for (uint32_t limb = 0; limb < 4; ++limb) {
          expected[first + uint64_t{limb} * 3072 + row] = signed_limb(word, limb);
        }
      }
    }
  }
  return std::ranges::equal(columns, expected);
}

bool are_keys_cut(uint32_t queries, const Options& options, Report& report) {
  SeededRandom random(531);
  constexpr uint64_t kPitch = ring::kKeyWords + 5, kHalfBytes = 32 * 3072;
  const Memory<uint32_t> keys(random.words(queries * kPitch));
  // Those after which words are replaced, and those that are not reduced.
  const uint32_t edges[] = {
      0, 1, 0x7f7f7f7f, 0x7f7f7f80, 0x80000000, ring::kPackingModulus - 1, 0xffffd001, 0xffffffff};
  std::ranges::copy(edges, keys.begin());
  for (const LimbOrder order : {LimbOrder::kRows, LimbOrder::kWgmma, LimbOrder::kMma}) {
    const Memory<int8_t> limbs(2 * kHalfBytes);
    report =
        launch_with(options, dim3(2, queries), kCutKeysThreads, 0, cut_keys,
                    CutKeysArgs{keys.data(), kPitch, Limbs{limbs.data(), 3072, order}, kHalfBytes});
    for (uint32_t q = 0; q < queries; ++q) {
      for (uint32_t at = 0; at < ring::kKeyWords; ++at) {
        const uint32_t row = at / 2048 * 1024 + at % 1024, half = at / 1024 % 2;
        for (uint32_t limb = 0; limb < 4; ++limb) {
          const int8_t found = limbs[half * kHalfBytes + limb_place(order, 3072, q, limb, row)];
          if (found != signed_limb(keys[q * kPitch + at], limb)) return false;
        }
      }
    }
  }
  return true;
}

TEST(PackingKernels, CutTablesAndKeysAsTheSumsWantThem) {
  Report report;
  EXPECT_TRUE(is_table_cut(3, {}, report));
  EXPECT_TRUE(are_keys_cut(6, {}, report));
}

// dp4a, of up to three queries at a time.
Report sum_few(const SumProblem& problem, const Options& options = {}) {
  const SumArgs args = problem.args();
  Report report;
  for (uint32_t first = 0; first < args.query_count; first += 3) {
    const uint32_t queries = args.query_count - first;
    const auto kernel = queries == 1   ? scan_dp4a<1, PointSums>
                        : queries == 2 ? scan_dp4a<2, PointSums>
                                       : scan_dp4a<3, PointSums>;
    report =
        launch_with(options, dim3(args.column_count / 32 / 2, 1), 192, 0, kernel, args, first, 64u);
  }
  return report;
}

template <int kLimbRows>
Report sum_many(const SumProblem& problem, LimbOrder order, uint32_t walkers,
                const Options& options = {}) {
  const dim3 grid(walkers, (problem.args().query_count * 4 - 1) / kLimbRows + 1);
  constexpr uint32_t kSharedBytes = limb_shared_bytes<kLimbRows, 4>();
  if (order == LimbOrder::kMma) {
    if constexpr (kLimbRows <= 128) {
      return launch_with(options, grid, kMmaThreads, kSharedBytes,
                         scan_mma<kLimbRows, 4, PointSums>, problem.args());
    }
  } else if constexpr (kLimbRows >= 32) {
    return launch_with(options, grid, kWgmmaThreads, kSharedBytes,
                       scan_wgmma<kLimbRows, 4, PointSums>, problem.args());
  }
  return {};
}

TEST(PackingKernels, SumForFewQueries) {
  SeededRandom random(532);
  for (uint32_t queries = 1; queries <= 5; ++queries) {
    const SumProblem problem(random, LimbOrder::kRows, queries, 64 * (1 + queries % 2));
    sum_few(problem);
    problem.expect_right();
  }
}

// Walks cut anywhere, of one tile of columns and of several.
template <int kLimbRows>
void expect_sums(SeededRandom& random, LimbOrder order, uint32_t queries, uint32_t points,
                 uint32_t walkers) {
  const SumProblem problem(random, order, queries, points);
  // The largest tiles are those of scan_kernels_test.cpp.
  sum_many<kLimbRows>(problem, order, walkers, {.watches = kLimbRows <= 64});
  problem.expect_right();
}

TEST(PackingKernels, SumForManyQueriesByMma) {
  SeededRandom random(533);
  for (const uint32_t walkers : {1, 2, 7}) {
    expect_sums<16>(random, LimbOrder::kMma, 3, 128, walkers);
  }
  expect_sums<16>(random, LimbOrder::kMma, 5, 64, 3);
  expect_sums<32>(random, LimbOrder::kMma, 7, 64, 2);
  expect_sums<64>(random, LimbOrder::kMma, 16, 64, 2);
  expect_sums<128>(random, LimbOrder::kMma, 33, 64, 1);
}

TEST(PackingKernels, SumForManyQueriesByWgmma) {
  SeededRandom random(534);
  for (const uint32_t walkers : {1, 3, 7}) {
    expect_sums<32>(random, LimbOrder::kWgmma, 6, 128, walkers);
  }
  expect_sums<32>(random, LimbOrder::kWgmma, 9, 64, 2);
  expect_sums<64>(random, LimbOrder::kWgmma, 15, 64, 2);
  expect_sums<128>(random, LimbOrder::kWgmma, 32, 64, 1);
  expect_sums<256>(random, LimbOrder::kWgmma, 41, 64, 1);
}

// No accumulator wraps, and what they hold together is exact.
TEST(PackingKernels, SumTheLargestWords) {
  SeededRandom random(535);
  SumProblem few(random, LimbOrder::kRows, 2), mma(random, LimbOrder::kMma, 2),
      wgmma(random, LimbOrder::kWgmma, 2);
  // The greatest number of limbs, and the least; one less than the modulus.
  const uint32_t words[] = {0x7f7f7f7f, 0x7f7f7f80, ring::kPackingModulus - 1, 0xffffffff};
  for (const uint32_t table_word : words) {
    for (const uint32_t key_word : words) {
      for (SumProblem* problem : {&few, &mma, &wgmma}) problem->fill_with(table_word, key_word);
      sum_few(few, kUnwatched);
      few.expect_right();
      sum_many<16>(mma, LimbOrder::kMma, 1, kUnwatched);
      mma.expect_right();
      sum_many<32>(wgmma, LimbOrder::kWgmma, 1, kUnwatched);
      wgmma.expect_right();
    }
  }
}

// Sums of all limbs at their extremes, though no words have them: sums of 16 rows in one lane's 32
// bits, of 512 over a warp in twice 32.
TEST(PackingKernels, SumTheLargestLimbs) {
  SeededRandom random(536);
  for (const auto& [table_limb, key_limb] :
       {std::pair<int8_t, int8_t>{-128, -128}, {-128, 127}, {127, 127}}) {
    const SumProblem problem(random, LimbOrder::kRows, 1);
    const SumArgs args = problem.args();
    std::fill_n(const_cast<int8_t*>(args.columns), 256 * 3072, table_limb);
    std::fill_n(const_cast<int8_t*>(args.limbs), 16 * 3072, key_limb);
    sum_few(problem);
    int64_t expected = 0;
    for (uint32_t i = 0; i < 16; ++i) {
      const uint32_t number = i / 4 + i % 4;
      const int64_t weight = number < 4
                                 ? int64_t{1} << 8 * number
                                 : ((int64_t{1} << 32) - ring::kPackingModulus) << 8 * (number - 4);
      expected += 3072 * weight * table_limb * key_limb;
    }
    for (uint32_t point = 0; point < 64; ++point) {
      ASSERT_EQ(static_cast<int64_t>(args.products[point] - 0xfffffffffffff000), expected);
    }
    EXPECT_LE(static_cast<uint64_t>(std::abs(expected)), kSumMax);
  }
}

// What the host's ResponsePacker and write_bit_sequence() make of the same.
std::vector<uint8_t> finished(const FinishArgs& args, uint32_t query) {
  const ring::PrimeField field(ring::kPackingModulus);
  const auto ntt = ring::portable_ntt(ring::kPackingModulus);
  std::vector<uint32_t> lowered, body(2048);
  for (uint32_t pack = 0; pack < args.pack_count; ++pack) {
    for (uint32_t point = 0; point < 2048; ++point) {
      const uint64_t half = uint64_t{query} * 2 + point / 1024;
      const auto sum =
          static_cast<int64_t>(args.sums[(half * args.pack_count + pack) * 1024 + point % 1024]);
      const int64_t rest = sum % int64_t{ring::kPackingModulus};
      body[point] = static_cast<uint32_t>(rest < 0 ? rest + ring::kPackingModulus : rest);
    }
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

// Two packs of two queries.
class Finish {
 public:
  Finish() {
    SeededRandom random(534);
    for (uint64_t& sum : sums_) sum = random.below(2 * kSumMax + 1) - kSumMax;
    sums_[0] = kSumMax;
    sums_[1] = -kSumMax;
    for (uint32_t& product : products_) product = random.u32();
  }
  // Whether responses of this number of bits and columns come out right.
  bool run(uint32_t bits, uint32_t columns, const Options& options, Report& report) const {
    const uint64_t pitch = kPacks * 32 * bits;
    const Memory<uint32_t> packed(kQueries * pitch);
    const FinishArgs args{ring_.view(), sums_.data(), products_.data(), kColumns, columns,
                          kPacks,       bits,         packed.data(),    pitch};
    report = launch_with(options, dim3(kPacks, kQueries), kNttThreads, kFinishSharedBytes,
                         finish_packs, args);
    for (uint32_t q = 0; q < kQueries; ++q) {
      // What is left of the last pack's words is zero, like the last byte's unused bits.
      std::vector<uint8_t> expected = finished(args, q);
      expected.resize(4 * pitch);
      if (std::memcmp(packed.data() + q * pitch, expected.data(), 4 * pitch) != 0) return false;
    }
    return true;
  }

 private:
  static constexpr uint32_t kQueries = 2, kPacks = 2, kColumns = kPacks * 1024;
  const HostRing ring_;
  const Memory<uint64_t> sums_{kQueries * kPacks * 2048};
  const Memory<uint32_t> products_{kQueries * kColumns};
};

TEST(PackingKernels, FinishResponsesOfEveryWidth) {
  SeededRandom random(537);
  const Finish problem;
  Report report;
  for (uint32_t bits = 1; bits <= 32; ++bits) {
    const auto columns = static_cast<uint32_t>(random.between(1025, 2048));
    EXPECT_TRUE(problem.run(bits, columns, {}, report)) << bits << " bits, " << columns;
  }
}

// The epilogue of the sums, at the end of kernels that scan_kernels_test.cpp has with all tiles.
Subject sums(const std::string& kernel, LimbOrder order, uint32_t queries,
             Report (*run)(const SumProblem&, const Options&),
             std::vector<Redundant> redundant = {}) {
  return {kernel + "<sums>",
          [=](const Options& options, Report& report) {
            SeededRandom random(612);
            static std::map<std::string, SumProblem> problems;
            const SumProblem& problem =
                problems.try_emplace(kernel, random, order, queries).first->second;
            problem.forget_sums();
            report = run(problem, options);
            return problem.trouble().empty();
          },
          std::move(redundant)};
}

const bool kAdded = add_subjects(
    {{"cut_keys",
      [](const Options& options, Report& report) { return are_keys_cut(2, options, report); }},
     {"cut_table",
      [](const Options& options, Report& report) { return is_table_cut(2, options, report); }},
     sums("scan_dp4a", LimbOrder::kRows, 1, sum_few),
     sums("scan_mma", LimbOrder::kMma, 5,
          [](const SumProblem& p, const Options& o) {
            return sum_many<16>(p, LimbOrder::kMma, 2, o);
          },
          {last_wait("scan_mma.cuh", "scan_mma")}),
     sums("scan_wgmma", LimbOrder::kWgmma, 9,
          [](const SumProblem& p, const Options& o) {
            return sum_many<32>(p, LimbOrder::kWgmma, 2, o);
          },
          {last_wait("scan_wgmma.cuh", "scan_wgmma")}),
     {"finish_packs",
      [](const Options& options, Report& report) {
        static const Finish problem;
        return problem.run(16, 2048, options, report);
      },
      {{"ntt.cuh", "ntt_inverse", Step::kBlockBarrier, 6, kOwnPlaces}}}});

}  // namespace
}  // namespace blindfuse::emulator
