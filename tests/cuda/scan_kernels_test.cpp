// The CUDA kernels of the product, run by the emulator, against plain loops: every kernel, tile
// edges, walks cut anywhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tests/cuda/emulator.h"
#include "tests/cuda/kernel_support.h"
#include "tests/support.h"

#include "cuda/scan/kernels/ask_for_wgmma.cuh"
#include "cuda/scan/kernels/cut_words.cuh"
#include "cuda/scan/kernels/scan_dp4a.cuh"
#include "cuda/scan/kernels/scan_mma.cuh"
#include "cuda/scan/kernels/scan_wgmma.cuh"
#include "cuda/scan/kernels/scan_wgmma_tma.cuh"

namespace blindfuse::emulator {
namespace {

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
        // Rows that do not count hold anything.
        bytes_(random.octets(pitch_ * columns)),
        words_(random.words(rows * queries)),
        limbs_(pitch_ * ((uint64_t{queries} * 4 + 255) / 256 * 256)),
        before_(random.words(uint64_t{queries} * columns)),
        products_(before_) {}

  void fill_with(int8_t byte, uint32_t word) {
    std::ranges::fill(bytes_, static_cast<uint8_t>(byte));
    std::ranges::fill(words_, word);
  }
  // Onto what was there at first.
  void begin_anew() const { std::ranges::copy(before_, products_.begin()); }
  void cut(LimbOrder order) const {
    launch(dim3(blocks_for(pitch_ / kRowsPerThread, 64), queries_), 64, 0, cut_plain_words,
           PlainWords{words_.data(), rows_, 64, rows_, lead_}, Limbs{limbs_.data(), pitch_, order});
  }
  ScanArgs args() const {
    return {reinterpret_cast<const int8_t*>(bytes_.data()),
            pitch_,
            columns_,
            steps_,
            limbs_.data(),
            pitch_,
            queries_,
            products_.data(),
            columns_};
  }
  uint32_t queries() const { return queries_; }

  // By the definition, on what is there now.
  bool is_right() const {
    return are_sums(bytes_.data() + lead_, words_.data(), before_.data(), products_.data());
  }
  void expect_right(const char* what) const {
    ASSERT_TRUE(is_right()) << what << ": " << rows_ << " rows after " << lead_ << ", " << columns_
                            << " columns, " << queries_ << " queries";
  }

 private:
  // With nothing that is compiled into kernels, too.
  [[gnu::no_sanitize_thread]] bool are_sums(const uint8_t* bytes, const uint32_t* words,
                                            const uint32_t* before,
                                            const uint32_t* products) const {
    for (uint32_t q = 0; q < queries_; ++q) {
      for (uint32_t c = 0; c < columns_; ++c) {
        uint32_t sum = before[uint64_t{q} * columns_ + c];
        for (uint64_t r = 0; r < rows_; ++r) {
          sum += words[q * rows_ + r] *
                 static_cast<uint32_t>(int32_t{static_cast<int8_t>(bytes[c * pitch_ + r])});
        }
        if (products[uint64_t{q} * columns_ + c] != sum) return false;
      }
    }
    return true;
  }

  uint64_t rows_;
  uint32_t columns_;
  uint32_t queries_;
  uint32_t lead_;
  uint32_t steps_;
  uint64_t pitch_;
  Memory<uint8_t> bytes_;
  Memory<uint32_t> words_;
  Memory<int8_t> limbs_;
  std::vector<uint32_t> before_;
  Memory<uint32_t> products_;
};

// Each runs a kernel with one tile of queries, by a number of walkers for each tile.
using Scan = std::function<Report(const Problem&, uint32_t walkers, const Options&)>;

template <int kLimbRows>
Report mma(const Problem& problem, uint32_t walkers, const Options& options) {
  problem.cut(LimbOrder::kMma);
  return launch_with(options, dim3(walkers, blocks_for(problem.queries(), kLimbRows / 4)),
                     kMmaThreads, limb_shared_bytes<kLimbRows, 4>(), scan_mma<kLimbRows, 4>,
                     problem.args());
}
template <int kLimbRows>
Report wgmma(const Problem& problem, uint32_t walkers, const Options& options) {
  problem.cut(LimbOrder::kWgmma);
  return launch_with(options, dim3(walkers, blocks_for(problem.queries(), kLimbRows / 4)),
                     kWgmmaThreads, limb_shared_bytes<kLimbRows, 4>(), scan_wgmma<kLimbRows, 4>,
                     problem.args());
}
template <int kLimbRows, int kStages>
Report run_wgmma_tma(const ScanArgs& args, uint32_t walkers, const Options& options = {}) {
  return launch_with(
      options, dim3(walkers, blocks_for(args.query_count, kLimbRows / 4)), kWgmmaTmaThreads,
      TensorStages<kLimbRows, kStages>::kSharedBytes, scan_wgmma_tma<kLimbRows, kStages>, args,
      map_of(args.columns, matrix_tensor(args)), map_of(args.limbs, limb_tensor(args, kLimbRows)));
}
// Stages as few as there may be, so that all are filled again and again, or those of a launch.
template <int kLimbRows, int kStages>
Report wgmma_tma(const Problem& problem, uint32_t walkers, const Options& options) {
  problem.cut(LimbOrder::kRows);
  return walkers % 2 == 0 ? run_wgmma_tma<kLimbRows, kStages>(problem.args(), walkers, options)
                          : run_wgmma_tma<kLimbRows, 4>(problem.args(), walkers, options);
}
// All queries, three at a time.
Report dp4a(const Problem& problem, uint32_t columns_each, const Options& options) {
  problem.cut(LimbOrder::kRows);
  const ScanArgs args = problem.args();
  const dim3 grid(blocks_for(args.column_count, columns_each),
                  blocks_for(uint64_t{args.step_count} * kStepRows, kDp4aBlockRows));
  Report report;
  for (uint32_t first = 0; first < args.query_count; first += 3) {
    const uint32_t queries = args.query_count - first;
    const auto kernel = queries == 1 ? scan_dp4a<1> : queries == 2 ? scan_dp4a<2> : scan_dp4a<3>;
    report = launch_with(options, grid, kDp4aThreads, 0, kernel, args, first, columns_each);
  }
  return report;
}

// A kernel of the tensor cores, with the tile for this number of queries.
struct TensorScan {
  const char* name;
  Scan (*for_queries)(uint32_t queries);
  uint32_t columns;  // of a tile
};
const TensorScan kTensorScans[] = {
    {"mma",
     [](uint32_t queries) -> Scan {
       return queries <= 4 ? mma<16> : queries <= 8 ? mma<32> : queries <= 16 ? mma<64> : mma<128>;
     },
     256},
    {"wgmma",
     [](uint32_t queries) -> Scan {
       return queries <= 8    ? wgmma<32>
              : queries <= 16 ? wgmma<64>
              : queries <= 32 ? wgmma<128>
                              : wgmma<256>;
     },
     128},
    {"wgmma_tma",
     [](uint32_t queries) -> Scan {
       return queries <= 8    ? wgmma_tma<32, 8>
              : queries <= 16 ? wgmma_tma<64, 8>
              : queries <= 32 ? wgmma_tma<128, 6>
                              : wgmma_tma<256, 4>;
     },
     128}};

class TensorScans : public testing::TestWithParam<TensorScan> {
 protected:
  void expect_right(uint64_t rows, uint32_t columns, uint32_t queries, uint32_t lead,
                    uint32_t walkers) {
    const Problem problem(random_, rows, columns, queries, lead);
    const Report report = GetParam().for_queries(queries)(problem, walkers, {});
    EXPECT_EQ(report.bank_conflicts, 0u);
    problem.expect_right(GetParam().name);
  }

  SeededRandom random_{505};
};
INSTANTIATE_TEST_SUITE_P(Kernels, TensorScans, testing::ValuesIn(kTensorScans),
                         [](const auto& of) { return of.param.name; });

TEST_P(TensorScans, QueriesOfEveryShape) {
  const uint32_t tile = GetParam().columns;
  for (const uint32_t queries : {1, 3, 4, 5, 8, 9, 16, 17, 31, 32, 33, 64, 65}) {
    const uint32_t columns[] = {1, 8, 33, tile - 1, tile, tile + 1, tile + 8};
    for (const uint32_t some : {columns[queries % 7], columns[(queries + 3) % 7]}) {
      expect_right(random_.between(1, 500), some, queries,
                   static_cast<uint32_t>(random_.below(128)),
                   static_cast<uint32_t>(random_.between(1, 4)));
    }
  }
}

// More steps than stages of shared memory, and walks that begin and end anywhere in tiles.
TEST_P(TensorScans, QueriesInWalksOfAnyLength) {
  const uint32_t columns = 2 * GetParam().columns + 8;
  for (const uint32_t walkers : {1, 2, 5, 7, 40}) expect_right(1500, columns, 6, 3, walkers);
  expect_right(1200, columns, 40, 0, 2);
  // Several pieces each, and a rest that begins and ends in the midst of a chunk's piece.
  expect_right(4501, columns - 9, 3, 99, 4);
}

// All -128 times all ones, and the other extremes.
TEST_P(TensorScans, WrapAtTheExtremes) {
  for (const auto& [byte, word] : {std::pair<int, uint32_t>{-128, 0xffffffff},
                                   {-128, 0x80808080},
                                   {-128, 0x7f7f7f7f},
                                   {-128, 0x80000000},
                                   {127, 0x7f7f7f7f},
                                   {-1, 0xffffffff}}) {
    Problem problem(random_, 1000, 3, 5);
    problem.fill_with(static_cast<int8_t>(byte), word);
    GetParam().for_queries(5)(problem, 1, {});
    problem.expect_right(GetParam().name);
  }
}

// Sums of limbs that leave 31 bits, after 2^17 rows at the earliest.
TEST(ScanKernels, MmaSumsWrap) {
  SeededRandom random(507);
  Problem problem(random, (1 << 17) + 64, 1, 1);
  problem.fill_with(-128, 0x80808080);
  mma<16>(problem, 1, kUnwatched);
  problem.expect_right("scan_mma");
}

TEST(ScanKernels, Dp4aQueries) {
  SeededRandom random(504);
  for (const uint32_t columns : {1, 31, 32, 33, 70, 130}) {
    for (const uint64_t rows : {1, 15, 128, 4095, 4097, 9000}) {
      if (rows * columns > 100'000) continue;
      const auto queries = static_cast<uint32_t>(random.between(1, 7));
      const Problem problem(random, rows, columns, queries,
                            static_cast<uint32_t>(random.below(128)));
      dp4a(problem, 32 * static_cast<uint32_t>(random.between(1, 4)), {});
      problem.expect_right("scan_dp4a");
    }
  }
  Problem extreme(random, 4000, 3, 2);
  extreme.fill_with(-128, 0x80808080);
  dp4a(extreme, 32, {});
  extreme.expect_right("scan_dp4a");
}

// A matrix of which only some rows take part: the map is of these, and what lies around them is
// neither zero nor read.
TEST(ScanKernels, WgmmaTmaTakesRowsInTheMidst) {
  SeededRandom random(515);
  const Problem problem(random, 1300, 140, 9);
  problem.cut(LimbOrder::kRows);
  const ScanArgs all = problem.args();
  for (const uint32_t from : {0u, 3u}) {
    ScanArgs part = all;
    part.columns += from * kStepRows;
    part.limbs += from * kStepRows;
    part.step_count = from == 0 ? 3 : all.step_count - 3;
    run_wgmma_tma<64, 8>(part, 2);
  }
  problem.expect_right("scan_wgmma_tma in two parts");
}

TEST(ScanKernels, TheDeviceSaysWhetherItRunsWgmma) {
  for (const bool runs : {false, true}) {
    set_wgmma_code(runs);
    const Memory<uint32_t> answer(1);
    launch(1, 32, 0, ask_for_wgmma, answer.data());
    EXPECT_EQ(answer[0], runs ? 1u : 0u);
  }
}

// Two tiles of queries, two of columns, shared out among three blocks: the second goes from one
// tile of columns to the next.
Subject subject(const std::string& name, const Scan& scan, uint64_t rows, uint32_t columns,
                uint32_t queries, uint32_t walkers = 3, std::vector<Redundant> redundant = {}) {
  const auto run = [=, problem = std::shared_ptr<Problem>()](const Options& options,
                                                             Report& report) mutable {
    SeededRandom random(600);
    if (problem == nullptr) problem = std::make_shared<Problem>(random, rows, columns, queries);
    problem->begin_anew();
    report = scan(*problem, walkers, options);
    return problem->is_right();
  };
  return {name, run, std::move(redundant)};
}

constexpr uint64_t kWalkedRows = 8 * 128 - 5;

template <int kLimbRows>
Subject mma_subject() {
  return subject("scan_mma<" + std::to_string(kLimbRows) + '>', mma<kLimbRows>, kWalkedRows, 264,
                 kLimbRows / 4 + 1, 3, {last_wait("scan_mma.cuh", "scan_mma")});
}
template <int kLimbRows>
Subject wgmma_subject() {
  return subject("scan_wgmma<" + std::to_string(kLimbRows) + '>', wgmma<kLimbRows>, kWalkedRows,
                 136, kLimbRows / 4 + 1, 3, {last_wait("scan_wgmma.cuh", "scan_wgmma")});
}
// Twice as many steps, so that every stage is filled again after the end of a piece.
template <int kLimbRows>
Subject wgmma_tma_subject() {
  return subject("scan_wgmma_tma<" + std::to_string(kLimbRows) + '>', wgmma_tma<kLimbRows, 4>,
                 16 * 128 - 5, 136, kLimbRows / 4 + 1);
}

const bool kAdded =
    add_subjects({subject("scan_dp4a<1>", dp4a, 4300, 40, 1, 32),
                  subject("scan_dp4a<2>", dp4a, 4300, 40, 2, 32),
                  subject("scan_dp4a<3>", dp4a, 4300, 40, 3, 32),
                  mma_subject<16>(),
                  mma_subject<32>(),
                  mma_subject<64>(),
                  mma_subject<128>(),
                  wgmma_subject<32>(),
                  wgmma_subject<64>(),
                  wgmma_subject<128>(),
                  wgmma_subject<256>(),
                  wgmma_tma_subject<32>(),
                  wgmma_tma_subject<64>(),
                  wgmma_tma_subject<128>(),
                  wgmma_tma_subject<256>(),
                  {"ask_for_wgmma", [](const Options& options, Report& report) {
                     const Memory<uint32_t> answer(1);
                     report = launch_with(options, 1, 32, 0, ask_for_wgmma, answer.data());
                     return answer[0] == 1;
                   }}});

}  // namespace
}  // namespace blindfuse::emulator
