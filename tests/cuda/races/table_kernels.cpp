// The kernels that make packing tables, and small problems for them.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/arithmetic/ring/ntt.h"
#include "tests/cuda/device_memory.h"
#include "tests/cuda/host_ring.h"
#include "tests/cuda/races/device_side.h"
#include "tests/cuda/races/mutation.h"
#include "tests/cuda/races/ranges.h"
#include "tests/support.h"

#include "cuda/packing/kernels/key_switch_chains.cuh"
#include "cuda/packing/kernels/public_rows.cuh"
#include "cuda/packing/kernels/traces.cuh"

namespace blindfuse::races {
namespace {

using emulator::HostRing;
using emulator::Memory;
using ring::kDigits;
using ring::kDimension;
using ring::kOrbit;
using ring::kPackingModulus;
using support::SeededRandom;
using Coefficients = std::array<uint32_t, kDimension>;

const ring::PrimeField kField(kPackingModulus);

void fill_with_values(SeededRandom& random, const Memory<uint32_t>& values) {
  for (uint32_t& value : values) value = static_cast<uint32_t>(random.below(kPackingModulus));
}

Coefficients copied(const uint32_t* words) {
  Coefficients all;
  std::copy_n(words, kDimension, all.begin());
  return all;
}

Subject public_rows() {
  return {"cut_public_rows",
          [](const Options& options, bool* is_right) {
            constexpr uint32_t kRows = 2 * kRingWords, kQueries = 3;
            SeededRandom random(620);
            const Memory<uint32_t> blocks(kRows);
            for (uint32_t& word : blocks) word = random.u32();
            const Memory<int8_t> limbs(16 * kRows);
            const Ranges ranges(blocks, limbs);
            Report report =
                run(options, ranges, dim3(2, kQueries), 128, 0, cut_public_rows,
                    static_cast<const uint32_t*>(blocks.data()), Limbs{limbs.data(), kRows});
            if (is_right == nullptr) return report;
            *is_right = true;
            for (uint32_t at = 0; at < kQueries * kRows; ++at) {
              const uint32_t q = at / kRows, row = at % kRows;
              uint32_t sum = 0;
              for (uint32_t l = 0; l < 4; ++l) {
                sum += static_cast<uint32_t>(int32_t{limbs[limb_row(q, l) * kRows + row]}) << 8 * l;
              }
              // X^2048 is -1.
              const uint32_t place = q + row % kRingWords;
              const uint32_t word = blocks[row / kRingWords * kRingWords + place % kRingWords];
              *is_right &= sum == (place < kRingWords ? word : 0 - word);
            }
            return report;
          },
          {}};
}

constexpr const char* kOwnPlaces = "each thread reads what it wrote itself";

// One pack, the first two coefficients, and those 1024 after them.
Subject columns() {
  return {"ntt_columns",
          [](const Options& options, bool* is_right) {
            constexpr uint64_t kColumns = kOrbit - 100;
            constexpr uint32_t kRows = 2;
            SeededRandom random(621);
            const HostRing ring;
            const Memory<uint32_t> hints((kOrbit + kRows) * kColumns), squares(kRows * kDimension);
            for (uint32_t& word : hints) word = random.u32();
            Ranges ranges(hints, squares);
            ranges.with(ring);
            Report report =
                run(options, ranges, dim3(kRows), kNttThreads, kRowSharedBytes, ntt_columns,
                    TraceArgs{ring.view(), hints.data(), kColumns, squares.data()});
            if (is_right == nullptr) return report;
            *is_right = true;
            const uint32_t scale = kField.inverse(kOrbit);
            const auto ntt = ring::portable_ntt(kPackingModulus);
            for (uint32_t i = 0; i < kRows; ++i) {
              Coefficients row{};
              for (uint64_t half = 0; half < 2; ++half) {
                for (uint64_t c = 0; c < kColumns; ++c) {
                  const uint32_t hint = hints[(half * kOrbit + i) * kColumns + c];
                  row[half * kOrbit + c] = kField.multiply(scale, ring::switch_to_q(hint));
                }
              }
              ntt->forward(row);
              *is_right &= copied(squares.data() + i * kDimension) == row;
            }
            return report;
          },
          {{"ntt.cuh", "ntt_forward", Step::kBlockBarrier, 1, kOwnPlaces}}};
}

Subject rows() {
  return {"ntt_and_rotate_rows",
          [](const Options& options, bool* is_right) {
            constexpr uint32_t kRows = 3;
            SeededRandom random(622);
            const HostRing ring;
            const Memory<uint32_t> hints(1), squares(kRows * kDimension);
            fill_with_values(random, squares);
            std::vector<Coefficients> before;
            for (uint32_t i = 0; i < kRows; ++i) {
              before.push_back(copied(squares.data() + i * kDimension));
            }
            Ranges ranges(squares);
            ranges.with(ring);
            Report report =
                run(options, ranges, dim3(kRows), kNttThreads, kRowSharedBytes, ntt_and_rotate_rows,
                    TraceArgs{ring.view(), hints.data(), 0, squares.data()});
            if (is_right == nullptr) return report;
            *is_right = true;
            const auto ntt = ring::portable_ntt(kPackingModulus);
            for (uint32_t i = 0; i < kRows; ++i) {
              Coefficients values, turned;
              for (size_t half = 0; half < kDimension; half += kOrbit) {
                // Of 1024 coefficients, at the points of the same half.
                Coefficients of_half{};
                std::copy_n(before[i].begin() + half, kOrbit, of_half.begin());
                ntt->forward(of_half);
                std::copy_n(of_half.begin() + half, kOrbit, values.begin() + half);
              }
              ring::apply({i}, values, turned);
              *is_right &= copied(squares.data() + i * kDimension) == turned;
            }
            return report;
          },
          {{"ntt.cuh", "ntt_forward", Step::kBlockBarrier, 1, kOwnPlaces}}};
}

// Of both squares of a pack, the blocks of 3 x 3 tiles.
Subject transpose() {
  return {"transpose_squares",
          [](const Options& options, bool* is_right) {
            constexpr uint32_t kTiles = 3;
            const Memory<uint32_t> square(uint64_t{32} * kTiles * kRingWords);
            for (uint64_t i = 0; i < 32 * kTiles * kRingWords; ++i) {
              square[i] = static_cast<uint32_t>(i);
            }
            const Ranges ranges(square);
            Report report = run(options, ranges, dim3(kTiles, kTiles, 2), kTransposeThreads,
                                kTransposeSharedBytes, transpose_squares, square.data());
            if (is_right == nullptr) return report;
            *is_right = true;
            for (uint32_t row = 0; row < 32 * kTiles; ++row) {
              for (uint32_t at = 0; at < 2 * 32 * kTiles; ++at) {
                const uint32_t column = at / 2, first = at % 2 * kOrbitWords;
                *is_right &=
                    square[row * kRingWords + first + column] == column * kRingWords + first + row;
              }
            }
            return report;
          },
          {}};
}

// What switches make of any traces of two packs, and any key masks.
class Switches {
 public:
  explicit Switches(SeededRandom& random) {
    fill_with_values(random, squares_);
    fill_with_values(random, key_masks_);
  }

  Report run_kernel(const Options& options, uint32_t count) const {
    Ranges ranges(squares_, key_masks_, tables_, masks_);
    ranges.with(ring_);
    return run(options, ranges, dim3(2), kNttThreads, kKeySwitchSharedBytes, key_switch_down,
               TableArgs{ring_.view(), squares_.data(), key_masks_.data(), tables_.data(),
                         masks_.data(), count});
  }

  Coefficients trace(size_t pack, size_t power) const {
    return copied(squares_.data() + (pack * kOrbit + power) * kDimension);
  }
  Coefficients mask(size_t pack) const { return copied(masks_.data() + pack * kDimension); }

  // The mask after switch `number`, as the host makes it.
  Coefficients switched(size_t number, Coefficients mask, Coefficients next) const {
    ntt_->inverse(mask);
    for (size_t k = 0; k < kDigits; ++k) {
      Coefficients digits, key_mask;
      for (size_t i = 0; i < kDimension; ++i) {
        digits[i] = kField.reduce_signed(ring::decompose(mask[i], kField)[k]);
      }
      ntt_->forward(digits);
      // From 5^(1023 - number) to the power below.
      ring::apply({1022 - number}, copied(key_masks_.data() + k * kDimension), key_mask);
      ntt_->add_products(digits, key_mask, next);
    }
    return next;
  }
  Coefficients coefficients(Coefficients values) const {
    ntt_->inverse(values);
    return values;
  }

 private:
  const HostRing ring_;
  const std::unique_ptr<const ring::Ntt> ntt_ = ring::portable_ntt(kPackingModulus);
  const Memory<uint32_t> squares_{2 * uint64_t{kPackSquareWords}}, key_masks_{ring::kKeyWords};
  const Memory<uint32_t> tables_{2 * kTableWords}, masks_{2 * kDimension};
};

Subject down() {
  return {"key_switch_down",
          [](const Options& options, bool* is_right) {
            constexpr uint32_t kCount = 2;
            SeededRandom random(623);
            static const Switches problem(random);
            Report report = problem.run_kernel(options, kCount);
            if (is_right == nullptr) return report;
            *is_right = true;
            for (size_t pack = 0; pack < 2; ++pack) {
              size_t power = kOrbit - 1;
              Coefficients mask = problem.trace(pack, power);
              for (size_t number = 0; number < kCount; ++number) {
                mask = problem.switched(number, mask, problem.trace(pack, --power));
              }
              *is_right &= problem.mask(pack) == problem.coefficients(mask);
            }
            return report;
          },
          {{"ntt.cuh", "ntt_forward", Step::kBlockBarrier, 1, kOwnPlaces},
           {"ntt.cuh", "ntt_inverse", Step::kBlockBarrier, 6, kOwnPlaces}}};
}

}  // namespace

const std::vector<Subject>& table_subjects() {
  static const std::vector<Subject> all = {public_rows(), columns(), rows(), transpose(), down()};
  return all;
}

}  // namespace blindfuse::races
