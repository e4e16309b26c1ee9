// The CUDA kernels, run by the emulator, against plain loops: every kernel, tile edges, walks cut
// anywhere, in every order that a GPU may choose.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "src/arithmetic/bit_sequence.h"
#include "tests/cuda/emulator.h"
#include "tests/cuda/kernel_support.h"
#include "tests/cuda/tensor_maps.h"
#include "tests/support.h"

#include "cuda/scan/kernels/ask_for_wgmma.cuh"
#include "cuda/scan/kernels/combine_sums.cuh"
#include "cuda/scan/kernels/cut_words.cuh"
#include "cuda/scan/kernels/round_products.cuh"
#include "cuda/scan/kernels/scan_dp4a.cuh"
#include "cuda/scan/kernels/scan_mma.cuh"
#include "cuda/scan/kernels/scan_wgmma.cuh"
#include "cuda/scan/kernels/scan_wgmma_tma.cuh"

namespace blindfuse {
namespace {

using emulator::blocks_for;
using emulator::kSchedules;
using emulator::launch;
using emulator::launch_with;
using emulator::Memory;
using emulator::Schedule;
using support::SeededRandom;

// A range of rows of a matrix, and queries: what a kernel is given, and the products that are
// right.
class Problem {
 public:
  Problem(SeededRandom& random, uint64_t rows, uint32_t columns, uint32_t queries,
          uint32_t lead = 0)
      : rows_(rows),
        columns_(columns),
        queries_(queries),
        lead_(lead),
        steps_(blocks_for(lead + rows, kStepRows)),
        pitch_(uint64_t{steps_} * kStepRows),
        bytes_(pitch_ * columns),
        words_(random.words(rows * queries)),
        limbs_(pitch_ * ((uint64_t{queries} * 4 + 255) / 256 * 256)),
        products_(uint64_t{queries} * columns) {
    // Rows that do not count hold anything.
    for (int8_t& byte : bytes_) byte = static_cast<int8_t>(random.byte());
    for (uint32_t& product : products_) product = random.u32();
    expected_.assign(products_.begin(), products_.end());
  }

  void fill_with(int8_t byte, uint32_t word) {
    std::ranges::fill(bytes_, byte);
    std::ranges::fill(words_, word);
  }

  // By the definition, on what is there now.
  void work_out() {
    for (uint32_t q = 0; q < queries_; ++q) {
      for (uint32_t c = 0; c < columns_; ++c) {
        for (uint64_t r = 0; r < rows_; ++r) {
          expected_[uint64_t{q} * columns_ + c] +=
              words_[q * rows_ + r] *
              static_cast<uint32_t>(int32_t{bytes_[c * pitch_ + lead_ + r]});
        }
      }
    }
  }

  void cut(LimbOrder order = LimbOrder::kRows) {
    order_ = order;
    launch(dim3(blocks_for(pitch_ / kRowsPerThread, 64), queries_), 64, 0, cut_plain_words,
           PlainWords{words_.data(), rows_, 64, rows_, lead_}, limbs());
  }

  Limbs limbs() const { return {limbs_.data(), pitch_, order_}; }
  ScanArgs args() const {
    return {bytes_.data(), pitch_,   columns_,         steps_,  limbs_.data(),
            pitch_,        queries_, products_.data(), columns_};
  }
  uint32_t steps() const { return steps_; }
  uint32_t columns() const { return columns_; }

  bool is_right() const { return std::ranges::equal(products_, expected_); }
  void expect_right(const char* what) const {
    const auto at = std::ranges::mismatch(products_, expected_).in1;
    ASSERT_TRUE(at == products_.end())
        << what << ": " << rows_ << " rows after " << lead_ << ", " << columns_ << " columns, "
        << queries_ << " queries: product " << at - products_.begin();
  }

 private:
  uint64_t rows_;
  uint32_t columns_;
  uint32_t queries_;
  uint32_t lead_;
  uint32_t steps_;
  uint64_t pitch_;
  LimbOrder order_ = LimbOrder::kRows;
  Memory<int8_t> bytes_;
  std::vector<uint32_t> words_;
  Memory<int8_t> limbs_;
  Memory<uint32_t> products_;
  std::vector<uint32_t> expected_;
};

template <int kLimbRows, int kStages>
void expect_mma(Problem& problem, uint32_t queries, uint32_t walkers, const Schedule& schedule) {
  problem.cut(LimbOrder::kMma);
  problem.work_out();
  const auto report = launch_with(schedule, dim3(walkers, blocks_for(queries, kLimbRows / 4)),
                                  kMmaThreads, limb_shared_bytes<kLimbRows, kStages>(),
                                  scan_mma<kLimbRows, kStages>, problem.args());
  EXPECT_EQ(report.bank_conflicts, 0u);
  problem.expect_right("scan_mma");
}

void expect_mma(SeededRandom& random, uint64_t rows, uint32_t columns, uint32_t queries,
                uint32_t lead, uint32_t walkers, const Schedule& schedule) {
  Problem problem(random, rows, columns, queries, lead);
  if (queries <= 4) return expect_mma<16, 4>(problem, queries, walkers, schedule);
  if (queries <= 8) return expect_mma<32, 4>(problem, queries, walkers, schedule);
  if (queries <= 16) return expect_mma<64, 4>(problem, queries, walkers, schedule);
  expect_mma<128, 4>(problem, queries, walkers, schedule);
}

template <int kLimbRows, int kStages>
void expect_wgmma(Problem& problem, uint32_t queries, uint32_t walkers, const Schedule& schedule) {
  problem.cut(LimbOrder::kWgmma);
  problem.work_out();
  const auto report = launch_with(schedule, dim3(walkers, blocks_for(queries, kLimbRows / 4)),
                                  kWgmmaThreads, limb_shared_bytes<kLimbRows, kStages>(),
                                  scan_wgmma<kLimbRows, kStages>, problem.args());
  EXPECT_EQ(report.bank_conflicts, 0u);
  problem.expect_right("scan_wgmma");
}

void expect_wgmma(SeededRandom& random, uint64_t rows, uint32_t columns, uint32_t queries,
                  uint32_t lead, uint32_t walkers, const Schedule& schedule) {
  Problem problem(random, rows, columns, queries, lead);
  if (queries <= 8) return expect_wgmma<32, 4>(problem, queries, walkers, schedule);
  if (queries <= 16) return expect_wgmma<64, 4>(problem, queries, walkers, schedule);
  if (queries <= 32) return expect_wgmma<128, 4>(problem, queries, walkers, schedule);
  expect_wgmma<256, 4>(problem, queries, walkers, schedule);
}

TensorMap map_of(const int8_t* bytes, const TensorShape& shape) {
  EXPECT_TRUE(is_valid(shape));
  TensorMap map;
  EXPECT_EQ(emulator::make_map(&map, emulator::arguments_for(bytes, shape)), "");
  return map;
}

template <int kLimbRows, int kStages>
void run_wgmma_tma(const ScanArgs& args, uint32_t walkers, const Schedule& schedule) {
  launch_with(schedule, dim3(walkers, blocks_for(args.query_count, kLimbRows / 4)),
              kWgmmaTmaThreads, TensorStages<kLimbRows, kStages>::kSharedBytes,
              scan_wgmma_tma<kLimbRows, kStages>, args, map_of(args.columns, matrix_tensor(args)),
              map_of(args.limbs, limb_tensor(args, kLimbRows)));
}

// Stages as few as there may be, so that all are filled again and again, or those of a launch.
template <int kLimbRows, int kStages>
void expect_wgmma_tma(Problem& problem, uint32_t walkers, const Schedule& schedule) {
  problem.cut();
  problem.work_out();
  if (walkers % 2 == 0) {
    run_wgmma_tma<kLimbRows, kStages>(problem.args(), walkers, schedule);
  } else {
    run_wgmma_tma<kLimbRows, 4>(problem.args(), walkers, schedule);
  }
  problem.expect_right("scan_wgmma_tma");
}

void expect_wgmma_tma(SeededRandom& random, uint64_t rows, uint32_t columns, uint32_t queries,
                      uint32_t lead, uint32_t walkers, const Schedule& schedule) {
  Problem problem(random, rows, columns, queries, lead);
  if (queries <= 8) return expect_wgmma_tma<32, 8>(problem, walkers, schedule);
  if (queries <= 16) return expect_wgmma_tma<64, 8>(problem, walkers, schedule);
  if (queries <= 32) return expect_wgmma_tma<128, 6>(problem, walkers, schedule);
  expect_wgmma_tma<256, 4>(problem, walkers, schedule);
}

TEST(CudaKernels, WgmmaTmaQueriesOfEveryShape) {
  SeededRandom random(513);
  for (const uint32_t queries : {1, 4, 8, 9, 16, 17, 32, 33, 64, 65}) {
    for (const uint32_t columns : {1, 8, 63, 65, 127, 128, 129, 264}) {
      const uint64_t rows = random.between(1, 500);
      const auto lead = static_cast<uint32_t>(random.below(128));
      const auto walkers = static_cast<uint32_t>(random.between(1, 4));
      expect_wgmma_tma(random, rows, columns, queries, lead, walkers,
                       random.one_of(std::vector(std::begin(kSchedules), std::end(kSchedules))));
    }
  }
}

TEST(CudaKernels, WgmmaTmaQueriesInWalksOfAnyLength) {
  SeededRandom random(514);
  for (const Schedule& schedule : kSchedules) {
    for (const uint32_t walkers : {1, 2, 3, 5, 7, 40}) {
      expect_wgmma_tma(random, 1500, 300, 6, 3, walkers, schedule);
    }
    expect_wgmma_tma(random, 2000, 200, 70, 0, 2, schedule);
    expect_wgmma_tma(random, 4500, 300, 5, 1, 4, schedule);  // several pieces each, and a rest
  }
}

// A matrix of which only some rows take part: the map is of these, and what lies around them is
// neither zero nor read.
TEST(CudaKernels, WgmmaTmaTakesRowsInTheMidst) {
  SeededRandom random(515);
  Problem problem(random, 1300, 140, 9);
  problem.cut();
  const ScanArgs all = problem.args();
  for (const uint32_t from : {0u, 3u}) {
    ScanArgs part = all;
    part.columns += from * kStepRows;
    part.limbs += from * kStepRows;
    part.step_count = from == 0 ? 3 : all.step_count - 3;
    run_wgmma_tma<64, 8>(part, 2, {});
  }
  problem.work_out();
  problem.expect_right("scan_wgmma_tma in two parts");
}

// Boxes that begin a column or a row off, or are not swizzled, give other products.
TEST(CudaKernels, WgmmaTmaNeedsItsTensors) {
  SeededRandom random(516);
  const auto products_of = [&](auto change) {
    Problem problem(random, 900, 200, 6);
    problem.cut();
    problem.work_out();
    const ScanArgs args = problem.args();
    TensorShape matrix = matrix_tensor(args), limbs = limb_tensor(args, 32);
    const int8_t* columns = args.columns;
    change(matrix, limbs, columns);
    launch(2, kWgmmaTmaThreads, TensorStages<32, 8>::kSharedBytes, scan_wgmma_tma<32, 8>, args,
           map_of(columns, matrix), map_of(args.limbs, limbs));
    return problem.is_right();
  };
  using Shape = TensorShape;
  using Bytes = const int8_t*;
  EXPECT_TRUE(products_of([](Shape&, Shape&, Bytes&) {}));
  EXPECT_FALSE(products_of([](Shape& m, Shape&, Bytes&) { m.swizzle = BoxSwizzle::kNone; }));
  EXPECT_FALSE(products_of([](Shape&, Shape& l, Bytes&) { l.swizzle = BoxSwizzle::kNone; }));
  EXPECT_FALSE(products_of([](Shape& m, Shape&, Bytes&) { m.sizes[1] = 128; }));
  EXPECT_FALSE(products_of([](Shape& m, Shape&, Bytes&) { m.sizes[0] -= 128; }));
  EXPECT_FALSE(products_of([](Shape& m, Shape&, Bytes& b) { b += 16, m.sizes[1] -= 1; }));
  EXPECT_FALSE(products_of([](Shape&, Shape& l, Bytes&) { l.sizes[1] = 16; }));
  // Other bytes than the barrier expects.
  EXPECT_THROW(products_of([](Shape& m, Shape&, Bytes&) { m.box[1] = 64; }), std::logic_error);
  EXPECT_THROW(products_of([](Shape&, Shape& l, Bytes&) { l.box[1] = 40; }), std::logic_error);
}

TEST(CudaKernels, WgmmaQueriesOfEveryShape) {
  SeededRandom random(510);
  for (const uint32_t queries : {1, 4, 8, 9, 16, 17, 32, 33, 64, 65}) {
    for (const uint32_t columns : {1, 8, 33, 127, 128, 129, 264}) {
      const uint64_t rows = random.between(1, 500);
      const auto lead = static_cast<uint32_t>(random.below(128));
      const auto walkers = static_cast<uint32_t>(random.between(1, 4));
      expect_wgmma(random, rows, columns, queries, lead, walkers,
                   random.one_of(std::vector(std::begin(kSchedules), std::end(kSchedules))));
    }
  }
}

TEST(CudaKernels, WgmmaQueriesInWalksOfAnyLength) {
  SeededRandom random(511);
  for (const Schedule& schedule : kSchedules) {
    for (const uint32_t walkers : {1, 2, 3, 5, 7, 40}) {
      expect_wgmma(random, 1500, 300, 6, 3, walkers, schedule);
    }
    expect_wgmma(random, 2000, 200, 70, 0, 2, schedule);
    expect_wgmma(random, 4500, 300, 5, 1, 4, schedule);  // several pieces each, and a rest
  }
}

// Whatever a scan synchronizes with, it needs: without it, it does not run to its end.
TEST(CudaKernels, NothingThatAScanWaitsForCanBeLeftOut) {
  using emulator::Step;
  SeededRandom random(512);
  Problem problem(random, 1500, 200, 6);
  problem.cut(LimbOrder::kMma);
  for (Schedule schedule : kSchedules) {
    for (const Step omitted : {Step::kCopyWait, Step::kBlockBarrier}) {
      schedule.omitted = omitted;
      EXPECT_THROW(launch_with(schedule, 2, kMmaThreads, limb_shared_bytes<32, 4>(),
                               scan_mma<32, 4>, problem.args()),
                   std::logic_error)
          << static_cast<int>(omitted);
    }
  }
  problem.cut(LimbOrder::kWgmma);
  for (Schedule schedule : kSchedules) {
    for (const Step omitted : {Step::kCopyWait, Step::kPublish, Step::kBlockBarrier,
                               Step::kWgmmaFence, Step::kWgmmaCommit, Step::kWgmmaWait}) {
      schedule.omitted = omitted;
      EXPECT_THROW(launch_with(schedule, 2, kWgmmaThreads, limb_shared_bytes<32, 4>(),
                               scan_wgmma<32, 4>, problem.args()),
                   std::logic_error)
          << static_cast<int>(omitted);
    }
  }
}

TEST(CudaKernels, NothingThatTheTmaPipelineWaitsForCanBeLeftOut) {
  using emulator::Step;
  SeededRandom random(517);
  Problem problem(random, 1500, 200, 6);
  problem.cut();
  for (Schedule schedule : kSchedules) {
    for (const Step omitted :
         {Step::kPublishBarriers, Step::kBlockBarrier, Step::kArrive, Step::kExpect,
          Step::kPhaseWait, Step::kWgmmaFence, Step::kWgmmaCommit, Step::kWgmmaWait}) {
      schedule.omitted = omitted;
      EXPECT_THROW((run_wgmma_tma<32, 4>(problem.args(), 2, schedule)), std::logic_error)
          << static_cast<int>(omitted);
    }
  }
}

TEST(CudaKernels, TheDeviceSaysWhetherItRunsWgmma) {
  for (const bool runs : {false, true}) {
    emulator::set_wgmma_code(runs);
    uint32_t answer = 7;
    launch(1, 32, 0, ask_for_wgmma, &answer);
    EXPECT_EQ(answer, runs ? 1u : 0u);
  }
}

TEST(CudaKernels, Dp4aQueries) {
  SeededRandom random(504);
  for (const uint32_t columns : {1, 31, 32, 33, 70, 130}) {
    for (const uint64_t rows : {1, 15, 128, 4095, 4097, 9000}) {
      if (rows * columns > 200'000) continue;
      const auto queries = static_cast<uint32_t>(random.between(1, 9));
      const auto lead = static_cast<uint32_t>(random.below(128));
      Problem problem(random, rows, columns, queries, lead);
      problem.cut();
      problem.work_out();
      const uint32_t per_block = 32 * static_cast<uint32_t>(random.between(1, 4));
      const dim3 grid(blocks_for(columns, per_block),
                      blocks_for(uint64_t{problem.steps()} * kStepRows, kDp4aBlockRows));
      for (uint32_t first = 0; first < queries; first += 3) {
        const auto kernel = queries - first == 1   ? scan_dp4a<1>
                            : queries - first == 2 ? scan_dp4a<2>
                                                   : scan_dp4a<3>;
        launch(grid, kDp4aThreads, 0, kernel, problem.args(), first, per_block);
      }
      problem.expect_right("scan_dp4a");
    }
  }
}

TEST(CudaKernels, MmaQueriesOfEveryShape) {
  SeededRandom random(505);
  for (const uint32_t queries : {1, 3, 4, 5, 8, 9, 16, 17, 31, 32, 33, 67}) {
    for (const uint32_t columns : {1, 8, 33, 255, 256, 257, 264}) {
      const uint64_t rows = random.between(1, 500);
      const auto lead = static_cast<uint32_t>(random.below(128));
      const auto walkers = static_cast<uint32_t>(random.between(1, 4));
      expect_mma(random, rows, columns, queries, lead, walkers,
                 random.one_of(std::vector(std::begin(kSchedules), std::end(kSchedules))));
    }
  }
}

// More steps than stages of shared memory, and walks that begin and end anywhere in tiles.
TEST(CudaKernels, MmaQueriesInWalksOfAnyLength) {
  SeededRandom random(506);
  for (const Schedule& schedule : kSchedules) {
    for (const uint32_t walkers : {1, 2, 3, 5, 7, 40}) {
      expect_mma(random, 1500, 520, 6, 3, walkers, schedule);
    }
    expect_mma(random, 2000, 300, 40, 0, 2, schedule);
  }
  // Several pieces each, and a rest that begins and ends in the midst of a chunk's piece.
  for (const uint32_t walkers : {1, 3, 4, 5}) {
    expect_mma(random, 4501, 519, 7, 99, walkers,
               random.one_of(std::vector(std::begin(kSchedules), std::end(kSchedules))));
  }
}

// All -128 times all ones, and the other extremes.
TEST(CudaKernels, WrapAtTheExtremes) {
  SeededRandom random(507);
  for (const auto& [byte, word] : {std::pair<int, uint32_t>{-128, 0xffffffff},
                                   {-128, 0x80808080},
                                   {-128, 0x7f7f7f7f},
                                   {-128, 0x80000000},
                                   {127, 0x7f7f7f7f},
                                   {-1, 0xffffffff}}) {
    Problem few(random, 4000, 3, 2);
    few.fill_with(static_cast<int8_t>(byte), word);
    few.cut();
    few.work_out();
    launch(dim3(1, 1), kDp4aThreads, 0, scan_dp4a<2>, few.args(), 0u, 32u);
    few.expect_right("scan_dp4a");
    Problem many(random, 4000, 3, 5);
    many.fill_with(static_cast<int8_t>(byte), word);
    expect_mma<32, 4>(many, 5, 1, {});
    Problem hopper(random, 4000, 3, 5);
    hopper.fill_with(static_cast<int8_t>(byte), word);
    expect_wgmma<32, 4>(hopper, 5, 1, {});
    Problem tensors(random, 4000, 3, 5);
    tensors.fill_with(static_cast<int8_t>(byte), word);
    expect_wgmma_tma<32, 8>(tensors, 1, {});
  }
  // Sums of limbs that leave 31 bits, after 2^17 rows at the earliest.
  Problem long_one(random, (1 << 17) + 64, 1, 1);
  long_one.fill_with(-128, 0x80808080);
  expect_mma<16, 4>(long_one, 1, 1, {});
}

TEST(CudaKernels, CombinesSumsOfLimbs) {
  SeededRandom random(508);
  constexpr uint32_t kColumns = 70, kQueries = 6;
  constexpr uint64_t kSumPitch = 72, kProductPitch = 71;
  std::vector<uint32_t> words = random.words(32 * kSumPitch);
  std::vector<uint32_t> products = random.words(kQueries * kProductPitch);
  std::vector<uint32_t> expected = products;
  for (uint32_t q = 0; q < kQueries; ++q) {
    for (uint32_t c = 0; c < kColumns; ++c) {
      for (uint32_t l = 0; l < 4; ++l) {
        expected[q * kProductPitch + c] += words[limb_row(q, l) * kSumPitch + c] << (8 * l);
      }
    }
  }
  launch(dim3(3, kQueries), 32, 0, combine_sums,
         CombineArgs{reinterpret_cast<const int32_t*>(words.data()), kSumPitch, kColumns,
                     products.data(), kProductPitch});
  EXPECT_EQ(products, expected);
}

// What the server does on the host, for every width.
TEST(CudaKernels, RoundsAndPacksResponses) {
  SeededRandom random(509);
  for (uint32_t bits = 1; bits <= 32; ++bits) {
    const auto columns = static_cast<uint32_t>(random.between(1, 200));
    constexpr uint32_t kQueries = 2;
    std::vector<uint32_t> products = random.words(kQueries * columns);
    // Ties, of even and of odd numbers.
    for (uint32_t c = 0; c < columns && bits < 32; c += 3) {
      products[c] = (products[c] | 1u << (31 - bits)) & ~((1u << (31 - bits)) - 1);
    }
    const uint64_t pitch = uint64_t{blocks_for(columns, 32)} * bits;
    const Memory<uint32_t> packed(kQueries * pitch);
    launch(dim3(blocks_for(blocks_for(columns, 32), 32), kQueries), 32, 0, round_products,
           RoundArgs{products.data(), columns, columns, bits, packed.data(), pitch});
    for (uint32_t q = 0; q < kQueries; ++q) {
      std::vector<uint8_t> expected(bit_sequence_bytes(columns, bits));
      write_bit_sequence(std::span(products).subspan(q * columns, columns), bits, expected);
      EXPECT_EQ(std::memcmp(packed.data() + q * pitch, expected.data(), expected.size()), 0)
          << bits << " bits, " << columns << " columns";
    }
  }
}

}  // namespace
}  // namespace blindfuse
