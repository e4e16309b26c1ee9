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

// One pack, the first three coefficients.
Subject columns() {
  return {"ntt_columns",
          [](const Options& options, bool* is_right) {
            constexpr uint64_t kColumns = kDimension - 100;
            constexpr uint32_t kRows = 3;
            SeededRandom random(621);
            const HostRing ring;
            const Memory<uint32_t> hints(kRows * kColumns), squares(kRows * kDimension);
            for (uint32_t& word : hints) word = random.u32();
            Ranges ranges(hints, squares);
            ranges.with(ring);
            Report report =
                run(options, ranges, dim3(kRows), kNttThreads, kRowSharedBytes, ntt_columns,
                    TraceArgs{ring.view(), hints.data(), kColumns, squares.data()});
            if (is_right == nullptr) return report;
            *is_right = true;
            const uint32_t scale = kField.inverse(kDimension);
            const auto ntt = ring::portable_ntt(kPackingModulus);
            for (uint32_t i = 0; i < kRows; ++i) {
              Coefficients row{};
              for (uint64_t c = 0; c < kColumns; ++c) {
                row[c] = kField.multiply(scale, ring::switch_to_q(hints[i * kColumns + c]));
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
              Coefficients turned;
              ntt->forward(before[i]);
              ring::apply(ring::Automorphism{i % kOrbit, false}, before[i], turned);
              *is_right &= copied(squares.data() + i * kDimension) == turned;
            }
            return report;
          },
          {{"ntt.cuh", "ntt_forward", Step::kBlockBarrier, 1, kOwnPlaces}}};
}

// A quarter of a square: the blocks of 3 x 3 tiles.
Subject transpose() {
  return {"transpose_squares",
          [](const Options& options, bool* is_right) {
            constexpr uint32_t kTiles = 3;
            const Memory<uint32_t> square(uint64_t{32} * kTiles * kRingWords);
            for (uint64_t i = 0; i < 32 * kTiles * kRingWords; ++i) {
              square[i] = static_cast<uint32_t>(i);
            }
            const Ranges ranges(square);
            Report report = run(options, ranges, dim3(kTiles, kTiles), kTransposeThreads,
                                kTransposeSharedBytes, transpose_squares, square.data());
            if (is_right == nullptr) return report;
            *is_right = true;
            for (uint32_t row = 0; row < 32 * kTiles; ++row) {
              for (uint32_t column = 0; column < 32 * kTiles; ++column) {
                *is_right &= square[row * kRingWords + column] == column * kRingWords + row;
              }
            }
            return report;
          },
          {}};
}

// What switches make of any traces and key masks of one pack.
class Switches {
 public:
  explicit Switches(SeededRandom& random) {
    fill_with_values(random, squares_);
    fill_with_values(random, key_masks_);
    fill_with_values(random, ends_);
  }

  template <typename Kernel>
  Report run_kernel(const Options& options, dim3 grid, Kernel kernel, uint32_t count) const {
    Ranges ranges(squares_, key_masks_, ends_, tables_, masks_);
    ranges.with(ring_);
    return run(options, ranges, grid, kNttThreads, kKeySwitchSharedBytes, kernel,
               TableArgs{ring_.view(), squares_.data(), key_masks_.data(), ends_.data(),
                         tables_.data(), masks_.data(), count});
  }

  Coefficients trace(size_t g) const { return copied(squares_.data() + g * kDimension); }
  Coefficients end(size_t chain) const { return copied(ends_.data() + chain * kDimension); }
  Coefficients mask() const { return copied(masks_.data()); }

  // The mask after switch `number`, as the host makes it.
  Coefficients switched(size_t number, Coefficients mask, Coefficients next) const {
    const KeySwitch now = KeySwitch::number(number);
    ntt_->inverse(mask);
    for (size_t k = 0; k < kDigits; ++k) {
      Coefficients digits, key_mask;
      for (size_t i = 0; i < kDimension; ++i) {
        digits[i] = kField.reduce_signed(ring::decompose(mask[i], kField)[k]);
      }
      ntt_->forward(digits);
      const size_t key = static_cast<size_t>(now.key) * kDigits + k;
      ring::apply(now.to, copied(key_masks_.data() + key * kDimension), key_mask);
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
  const Memory<uint32_t> squares_{kSquareWords}, key_masks_{ring::kKeyWords};
  const Memory<uint32_t> ends_{2 * kDimension}, tables_{kTableWords}, masks_{kDimension};
};

Subject down() {
  return {"key_switch_down",
          [](const Options& options, bool* is_right) {
            constexpr uint32_t kCount = 2;
            SeededRandom random(623);
            static const Switches problem(random);
            Report report = problem.run_kernel(options, dim3(2), key_switch_down, kCount);
            if (is_right == nullptr) return report;
            *is_right = true;
            for (size_t chain = 0; chain < 2; ++chain) {
              size_t g = chain * kOrbit + kOrbit - 1;
              Coefficients mask = problem.trace(g);
              for (size_t step = 0; step < kCount; ++step) {
                mask = problem.switched(chain * kChainKeySwitches + step, mask, problem.trace(--g));
              }
              *is_right &= problem.end(chain) == mask;
            }
            return report;
          },
          {{"ntt.cuh", "ntt_forward", Step::kBlockBarrier, 1, kOwnPlaces},
           {"ntt.cuh", "ntt_inverse", Step::kBlockBarrier, 6, kOwnPlaces}}};
}

Subject last() {
  return {"key_switch_last",
          [](const Options& options, bool* is_right) {
            SeededRandom random(624);
            static const Switches problem(random);
            Report report = problem.run_kernel(options, dim3(1), key_switch_last, 0);
            if (is_right == nullptr) return report;
            const Coefficients values =
                problem.switched(2 * kChainKeySwitches, problem.end(1), problem.end(0));
            *is_right = problem.mask() == problem.coefficients(values);
            return report;
          },
          {{"ntt.cuh", "ntt_forward", Step::kBlockBarrier, 1, kOwnPlaces},
           {"ntt.cuh", "ntt_inverse", Step::kBlockBarrier, 6, kOwnPlaces}}};
}

}  // namespace

const std::vector<Subject>& table_subjects() {
  static const std::vector<Subject> all = {public_rows(), columns(), rows(),
                                           transpose(),   down(),    last()};
  return all;
}

}  // namespace blindfuse::races
