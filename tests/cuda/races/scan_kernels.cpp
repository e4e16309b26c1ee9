// The kernels of the product, and small problems for them.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/arithmetic/bit_sequence.h"
#include "tests/cuda/device_memory.h"
#include "tests/cuda/races/device_side.h"
#include "tests/cuda/races/mutation.h"
#include "tests/cuda/races/ranges.h"
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
#include "cuda/scan/kernels/weigh_columns.cuh"
#include "cuda/scan/kernels/weigh_products.cuh"

namespace blindfuse::races {
namespace {

using emulator::blocks_for;
using emulator::Memory;
using support::SeededRandom;

// A matrix, queries, and their products by the definition.
class Products {
 public:
  Products(uint64_t rows, uint32_t columns, uint32_t queries, LimbOrder order = LimbOrder::kRows)
      : rows_(rows),
        columns_(columns),
        queries_(queries),
        steps_(blocks_for(rows, kStepRows)),
        pitch_(uint64_t{steps_} * kStepRows),
        bytes_(pitch_ * columns),
        words_(rows * queries),
        limbs_(pitch_ * (blocks_for(uint64_t{queries} * 4, 256) * 256)),
        products_(uint64_t{queries} * columns),
        expected_(uint64_t{queries} * columns) {
    SeededRandom random(600);
    for (int8_t& byte : bytes_) byte = static_cast<int8_t>(random.byte());
    for (uint32_t& word : words_) word = random.u32();
    work_out(bytes_.data(), words_.data(), expected_.data());
    cut({}, order);
  }

  ScanArgs args() const {
    return {bytes_.data(), pitch_,   columns_,         steps_,  limbs_.data(),
            pitch_,        queries_, products_.data(), columns_};
  }
  Report cut(const Options& options, LimbOrder order) const {
    const Ranges ranges(words_, limbs_);
    return run(options, ranges, dim3(blocks_for(pitch_ / kRowsPerThread, 32), queries_), 32, 0,
               cut_plain_words, PlainWords{words_.data(), rows_, 64, rows_, 0},
               Limbs{limbs_.data(), pitch_, order});
  }
  // Of limbs that were cut, onto products that are zero.
  template <typename Kernel, typename... Args>
  Report scan(const Options& options, bool* is_right, dim3 grid, uint32_t threads,
              uint32_t shared_bytes, Kernel kernel, Args... args_behind) const {
    std::ranges::fill(products_, 0u);
    const Ranges ranges(bytes_, limbs_, products_);
    Report report =
        run(options, ranges, grid, threads, shared_bytes, kernel, args(), args_behind...);
    if (is_right != nullptr) *is_right = std::ranges::equal(products_, expected_);
    return report;
  }

  // Whether the limb rows add up to the words.
  bool are_limbs_right() const {
    for (uint32_t q = 0; q < queries_; ++q) {
      for (uint64_t row = 0; row < pitch_; ++row) {
        uint32_t sum = 0;
        for (uint32_t l = 0; l < 4; ++l) {
          sum += static_cast<uint32_t>(int32_t{limbs_[limb_row(q, l) * pitch_ + row]}) << 8 * l;
        }
        if (sum != (row < rows_ ? words_[q * rows_ + row] : 0)) return false;
      }
    }
    return true;
  }

 private:
  [[gnu::no_sanitize_thread]] void work_out(const int8_t* bytes, const uint32_t* words,
                                            uint32_t* expected) const {
    for (uint32_t q = 0; q < queries_; ++q) {
      for (uint32_t c = 0; c < columns_; ++c) {
        uint32_t sum = 0;
        for (uint64_t r = 0; r < rows_; ++r) {
          sum += words[q * rows_ + r] * static_cast<uint32_t>(int32_t{bytes[c * pitch_ + r]});
        }
        expected[uint64_t{q} * columns_ + c] = sum;
      }
    }
  }

  uint64_t rows_;
  uint32_t columns_;
  uint32_t queries_;
  uint32_t steps_;
  uint64_t pitch_;
  Memory<int8_t> bytes_;
  Memory<uint32_t> words_;
  Memory<int8_t> limbs_;
  Memory<uint32_t> products_;
  std::vector<uint32_t> expected_;
};

Subject cut_plain() {
  return {"cut_plain_words",
          [](const Options& options, bool* is_right) {
            const Products problem(900, 1, 2);
            Report report = problem.cut(options, LimbOrder::kRows);
            if (is_right != nullptr) *is_right = problem.are_limbs_right();
            for (const LimbOrder order : {LimbOrder::kMma, LimbOrder::kWgmma}) {
              Report other = problem.cut(options, order);
              report.races.insert(report.races.end(), other.races.begin(), other.races.end());
            }
            return report;
          },
          {}};
}

Subject cut_bits() {
  return {"cut_bit_sequences",
          [](const Options& options, bool* is_right) {
            constexpr uint64_t kRows = 1024;
            constexpr uint32_t kQueries = 2, kBits = 13;
            constexpr uint64_t kStride = kRows * kBits / 32 + 1;
            SeededRandom random(601);
            const Memory<uint32_t> packed(kQueries * kStride);
            for (uint32_t& word : packed) word = random.u32();
            const Memory<int8_t> limbs(kRows * 16);
            const Memory<uint32_t> weights(kRows), sums(kQueries);
            for (uint32_t& weight : weights) weight = random.u32();
            std::ranges::fill(sums, 0u);
            const Ranges ranges(packed, limbs, weights, sums);
            Report report = run(options, ranges, dim3(2, kQueries), 32, 0, cut_bit_sequences,
                                BitSequences{packed.data(), kStride, kBits, kRows},
                                Limbs{limbs.data(), kRows}, QuerySums{weights.data(), sums.data()});
            if (is_right == nullptr) return report;
            *is_right = true;
            uint32_t weighted[kQueries] = {2, 2};  // warps
            for (uint64_t at = 0; at < kQueries * kRows; ++at) {
              const uint64_t q = at / kRows, row = at % kRows;
              uint32_t sum = 0, word = 0;
              for (uint32_t l = 0; l < 4; ++l) {
                const int8_t limb = limbs[limb_row(static_cast<uint32_t>(q), l) * kRows + row];
                sum += static_cast<uint32_t>(int32_t{limb}) << 8 * l;
              }
              for (uint32_t b = 0; b < kBits; ++b) {
                const uint64_t bit = row * kBits + b;
                word |= (packed[q * kStride + bit / 32] >> bit % 32 & 1) << (32 - kBits + b);
              }
              *is_right &= sum == word;
              weighted[q] += word * weights[row];
            }
            *is_right &= std::ranges::equal(sums, weighted);
            return report;
          },
          {}};
}

Subject combine() {
  return {"combine_sums",
          [](const Options& options, bool* is_right) {
            constexpr uint32_t kColumns = 100, kQueries = 2;
            SeededRandom random(602);
            const Memory<int32_t> sums(16 * kColumns);
            for (int32_t& sum : sums) sum = static_cast<int32_t>(random.u32());
            const Memory<uint32_t> products(kQueries * kColumns);
            std::ranges::fill(products, 5u);
            const Ranges ranges(sums, products);
            Report report =
                run(options, ranges, dim3(2, kQueries), 64, 0, combine_sums,
                    CombineArgs{sums.data(), kColumns, kColumns, products.data(), kColumns});
            if (is_right == nullptr) return report;
            *is_right = true;
            for (uint32_t i = 0; i < kQueries * kColumns; ++i) {
              uint32_t product = 5;
              for (uint32_t l = 0; l < 4; ++l) {
                product +=
                    static_cast<uint32_t>(sums[limb_row(i / kColumns, l) * kColumns + i % kColumns])
                    << 8 * l;
              }
              *is_right &= products[i] == product;
            }
            return report;
          },
          {}};
}

Subject round() {
  return {"round_products",
          [](const Options& options, bool* is_right) {
            constexpr uint32_t kColumns = 32 * 70, kQueries = 2, kBits = 16;
            constexpr uint64_t kPitch = kColumns / 32 * kBits;
            SeededRandom random(603);
            const Memory<uint32_t> products(kQueries * kColumns);
            for (uint32_t& product : products) product = random.u32();
            const Memory<uint32_t> responses(kQueries * kPitch);
            const Ranges ranges(products, responses);
            Report report = run(
                options, ranges, dim3(3, kQueries), 32, 0, round_products,
                RoundArgs{products.data(), kColumns, kColumns, kBits, responses.data(), kPitch});
            if (is_right == nullptr) return report;
            *is_right = true;
            for (uint32_t i = 0; i < kQueries * kColumns; ++i) {
              // Halves to the even number.
              const uint32_t upper = products[i] >> 16, rest = products[i] & 0xffff;
              const bool up = rest > 0x8000 || (rest == 0x8000 && upper % 2 == 1);
              *is_right &= (responses[i / 2] >> i % 2 * 16 & 0xffff) == (upper + up) % 0x10000;
            }
            return report;
          },
          {}};
}

Subject weigh_matrix() {
  return {"weigh_columns",
          [](const Options& options, bool* is_right) {
            constexpr uint64_t kPitch = 5 * 128;
            constexpr uint32_t kColumns = kWeighedColumns + 3;
            SeededRandom random(604);
            const Memory<int8_t> bytes(kPitch * kColumns);
            for (int8_t& byte : bytes) byte = static_cast<int8_t>(random.byte());
            const Memory<uint32_t> weights(kColumns), vector(kPitch);
            for (uint32_t& weight : weights) weight = random.u32();
            std::ranges::fill(vector, 0u);
            const Ranges ranges(bytes, weights, vector);
            Report report = run(
                options, ranges, dim3(2, 2), 32, 0, weigh_columns,
                WeighColumnsArgs{bytes.data(), kPitch, kColumns, weights.data(), vector.data()});
            if (is_right == nullptr) return report;
            *is_right = true;
            for (uint64_t r = 0; r < kPitch; ++r) {
              uint32_t sum = 0;
              for (uint64_t c = 0; c < kColumns; ++c) {
                sum += weights[c] * static_cast<uint32_t>(int32_t{bytes[c * kPitch + r]});
              }
              *is_right &= vector[r] == sum;
            }
            return report;
          },
          {}};
}

Subject weigh_batch() {
  return {"weigh_products",
          [](const Options& options, bool* is_right) {
            constexpr uint32_t kColumns = 700, kQueries = 2, kCutWarps = 3;
            SeededRandom random(605);
            const Memory<uint32_t> products(kQueries * kColumns), weights(kColumns), sums(kQueries);
            for (const auto* words : {&products, &weights, &sums}) {
              for (uint32_t& word : *words) word = random.u32();
            }
            const Memory<uint32_t> differences(kQueries);
            const Ranges ranges(products, weights, sums, differences);
            Report report =
                run(options, ranges, kQueries, kWeighProductsThreads, kWeighProductsSharedBytes,
                    weigh_products,
                    WeighProductsArgs{products.data(), kColumns, kColumns, weights.data(),
                                      sums.data(), kCutWarps, differences.data()});
            if (is_right == nullptr) return report;
            *is_right = true;
            for (uint32_t q = 0; q < kQueries; ++q) {
              uint32_t sum = 0;
              for (uint32_t c = 0; c < kColumns; ++c)
                sum += products[q * kColumns + c] * weights[c];
              *is_right &= differences[q] == sum - (sums[q] - kCutWarps);
            }
            return report;
          },
          {}};
}

Subject ask() {
  return {"ask_for_wgmma",
          [](const Options& options, bool* is_right) {
            const Memory<uint32_t> answer(1);
            const Ranges ranges(answer);
            Report report = run(options, ranges, 1, 32, 0, ask_for_wgmma, answer.data());
            if (is_right != nullptr) *is_right = answer[0] == 1;
            return report;
          },
          {}};
}

// Two blocks of columns, two of rows.
template <int kQueries>
Subject dp4a() {
  return {"scan_dp4a<" + std::to_string(kQueries) + '>',
          [problem = std::make_shared<const Products>(4300, 40, kQueries)](const Options& options,
                                                                           bool* is_right) {
            return problem->scan(options, is_right, dim3(2, 2), kDp4aThreads, 0,
                                 scan_dp4a<kQueries>, 0u, 32u);
          },
          {}};
}

constexpr const char* kNothingLeft =
    "all groups with something in them were waited for in a step; the last ones are empty";

// Two tiles of queries, two of columns, eight steps of each, shared out among three blocks: the
// second goes from one tile of columns to the next.
constexpr uint32_t kWalkers = 3;
constexpr uint64_t kWalkedRows = 8 * 128 - 5;

template <int kLimbRows>
Subject mma() {
  return {"scan_mma<" + std::to_string(kLimbRows) + '>',
          [problem = std::make_shared<const Products>(kWalkedRows, 264, kLimbRows / 4 + 1,
                                                      LimbOrder::kMma)](const Options& options,
                                                                        bool* is_right) {
            return problem->scan(options, is_right, dim3(kWalkers, 2), kMmaThreads,
                                 limb_shared_bytes<kLimbRows, 4>(), scan_mma<kLimbRows, 4>);
          },
          {{"scan_mma.cuh", "scan_mma", Step::kCopyWait, 2, kNothingLeft}}};
}

template <int kLimbRows>
Subject wgmma() {
  return {"scan_wgmma<" + std::to_string(kLimbRows) + '>',
          [problem = std::make_shared<const Products>(kWalkedRows, 136, kLimbRows / 4 + 1,
                                                      LimbOrder::kWgmma)](const Options& options,
                                                                          bool* is_right) {
            return problem->scan(options, is_right, dim3(kWalkers, 2), kWgmmaThreads,
                                 limb_shared_bytes<kLimbRows, 4>(), scan_wgmma<kLimbRows, 4>);
          },
          {{"scan_wgmma.cuh", "scan_wgmma", Step::kCopyWait, 2, kNothingLeft}}};
}

TensorMap tensor_map(const int8_t* bytes, const TensorShape& shape) {
  TensorMap map{};
  emulator::make_map(&map, emulator::arguments_for(bytes, shape));
  return map;
}

// Twice as many steps, so that every stage is filled again after the end of a piece.
template <int kLimbRows>
Subject wgmma_tma() {
  return {"scan_wgmma_tma<" + std::to_string(kLimbRows) + '>',
          [problem = std::make_shared<const Products>(16 * 128 - 5, 136, kLimbRows / 4 + 1)](
              const Options& options, bool* is_right) {
            const ScanArgs args = problem->args();
            return problem->scan(options, is_right, dim3(kWalkers, 2), kWgmmaTmaThreads,
                                 TensorStages<kLimbRows, 4>::kSharedBytes,
                                 scan_wgmma_tma<kLimbRows, 4>,
                                 tensor_map(args.columns, matrix_tensor(args)),
                                 tensor_map(args.limbs, limb_tensor(args, kLimbRows)));
          },
          {}};
}

}  // namespace

const std::vector<Subject>& scan_subjects() {
  static const std::vector<Subject> all = {
      cut_plain(),      cut_bits(),      combine(),    round(),         weigh_matrix(),
      weigh_batch(),    ask(),           dp4a<1>(),    dp4a<2>(),       dp4a<3>(),
      mma<16>(),        mma<32>(),       mma<64>(),    mma<128>(),      wgmma<32>(),
      wgmma<64>(),      wgmma<128>(),    wgmma<256>(), wgmma_tma<32>(), wgmma_tma<64>(),
      wgmma_tma<128>(), wgmma_tma<256>()};
  return all;
}

}  // namespace blindfuse::races
