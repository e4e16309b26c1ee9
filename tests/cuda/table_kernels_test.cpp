// The CUDA kernels that make packing tables, run by the emulator: against what they compute by
// definition, and against the host's code.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "host/cpu/packing/hint_polynomials.h"
#include "src/arithmetic/ring/ntt.h"
#include "src/protocol/public_polynomials.h"
#include "tests/cuda/emulator.h"
#include "tests/cuda/host_ring.h"
#include "tests/cuda/kernel_support.h"
#include "tests/support.h"

#include "cuda/packing/kernels/key_switch_chains.cuh"
#include "cuda/packing/kernels/public_rows.cuh"
#include "cuda/packing/kernels/traces.cuh"

namespace blindfuse::emulator {
namespace {

using ring::kDigits;
using ring::kDimension;
using ring::kOrbit;
using ring::kPackingModulus;
using support::SeededRandom;
using Coefficients = std::array<uint32_t, kDimension>;

const ring::PrimeField kField(kPackingModulus);

void fill_with_values(SeededRandom& random, std::span<uint32_t> values) {
  for (uint32_t& value : values) value = static_cast<uint32_t>(random.below(kPackingModulus));
}

// The word that four limbs add up to.
uint32_t word_at(const Limbs& limbs, uint32_t query, uint64_t row) {
  uint32_t sum = 0;
  for (uint32_t l = 0; l < 4; ++l) {
    const int8_t limb = limbs.bytes[limb_row(query, l) * limbs.pitch + row];
    sum += static_cast<uint32_t>(int32_t{limb}) << (8 * l);
  }
  return sum;
}

TEST(CudaTableKernels, PublicRowsMakeHintPolynomials) {
  SeededRandom random(530);
  constexpr uint32_t kRows = 2 * kDimension;
  const ring::PublicPolynomials polynomials(ChaChaKey{1, 2, 3});
  const Memory<uint32_t> blocks(kRows);
  for (uint32_t j = 0; j < 2; ++j) {
    polynomials.fill_block(j, ring::MutablePolynomial(blocks.data() + j * kDimension, kDimension));
  }
  const Memory<int8_t> limb_memory(uint64_t{4} * kDimension * kRows);
  const Limbs limbs{limb_memory.data(), kRows};
  launch_with(kUnwatched, dim3(2, kRingWords), 128, 0, cut_public_rows, blocks.data(), limbs);
  std::vector<int8_t> column(kRows);
  for (int8_t& byte : column) byte = static_cast<int8_t>(random.byte());
  Coefficients expected;
  HintPolynomials(polynomials.blocks(kRows)).compute(column, expected);
  for (uint32_t i = 0; i < kDimension; ++i) {
    uint32_t sum = 0;
    for (uint32_t row = 0; row < kRows; ++row) {
      sum += word_at(limbs, i, row) * static_cast<uint32_t>(int32_t{column[row]});
    }
    ASSERT_EQ(sum, expected[i]) << "coefficient " << i;
  }
}

TEST(CudaTableKernels, PublicRowsComeInTheOrderOfTheKernel) {
  SeededRandom random(531);
  const Memory<uint32_t> block(kDimension);
  for (uint32_t& word : block) word = random.u32();
  const auto cut = [&](LimbOrder order) {
    std::vector<int8_t> bytes(16 * kDimension);
    const Memory<int8_t> memory(bytes.size());
    launch(dim3(1, 4), 128, 0, cut_public_rows, block.data(),
           Limbs{memory.data(), kDimension, order});
    std::ranges::copy(memory, bytes.begin());
    return bytes;
  };
  const std::vector<int8_t> plain = cut(LimbOrder::kRows), wgmma = cut(LimbOrder::kWgmma);
  for (size_t i = 0; i < plain.size(); ++i) {
    const size_t row = i % 64;
    const size_t place = row % 16 / 4 * 16 + row / 16 * 4 + row % 4;
    ASSERT_EQ(wgmma[i - row + place], plain[i]) << i;
  }
}

// w^e of the point.
uint32_t exponent_of(size_t point) {
  uint32_t exponent = 1;
  for (size_t i = 0; i < point % kOrbit; ++i) exponent = exponent * 5 % ring::kOrder;
  return point < kOrbit ? exponent : ring::kOrder - exponent;
}

// R_g at w^m, by definition: 1/1024 sum over columns c of w^(m c) h_c(w^(m g)).
uint32_t trace_at(std::span<const uint32_t> hints, uint64_t columns, uint32_t pack, size_t g,
                  size_t m) {
  const uint32_t w = ring::root_of_unity(kField);
  const uint32_t to_m = kField.power(w, exponent_of(m));
  const uint32_t to_mg = kField.power(to_m, exponent_of(g));
  uint32_t sum = 0, to_mc = 1;
  for (uint64_t c = pack * kOrbit; c < std::min(columns, (pack + 1) * kOrbit); ++c) {
    uint32_t value = 0;
    for (size_t i = kDimension; i-- > 0;) {
      value = kField.add(kField.multiply(value, to_mg), ring::switch_to_q(hints[i * columns + c]));
    }
    sum = kField.add(sum, kField.multiply(to_mc, value));
    to_mc = kField.multiply(to_mc, to_m);
  }
  return kField.multiply(sum, kField.inverse(kOrbit));
}

TEST(CudaTableKernels, TracesOfTwoPacksByDefinition) {
  SeededRandom random(532);
  constexpr uint64_t kColumns = kOrbit + 100;
  const HostRing ring;
  const Memory<uint32_t> hints(kDimension * kColumns);
  for (uint32_t& word : hints) word = random.u32();
  // Of the last column some that lift to the ends.
  for (size_t i = 0; i < 20; ++i) hints[(i + 1) * kColumns - 1] = i % 2 == 0 ? 0xffffffff : 0;
  const Memory<uint32_t> squares(2 * uint64_t{kPackSquareWords});
  const TraceArgs args{ring.view(), hints.data(), kColumns, squares.data()};
  const auto transpose = [&] {
    launch_with(kUnwatched, dim3(kOrbitWords / 32, kOrbitWords / 32, 4), kTransposeThreads,
                kTransposeSharedBytes, transpose_squares, squares.data());
  };
  const dim3 rows(kOrbitWords, 2);
  launch_with(kUnwatched, rows, kNttThreads, kRowSharedBytes, ntt_columns, args);
  transpose();
  launch_with(kUnwatched, rows, kNttThreads, kRowSharedBytes, ntt_and_rotate_rows, args);
  transpose();
  for (int i = 0; i < 10; ++i) {
    const auto pack = static_cast<uint32_t>(i % 2);
    const size_t g = random.below(kOrbit), m = i / 2 % 2 * kOrbit + random.below(kOrbit);
    ASSERT_EQ(squares[pack * uint64_t{kPackSquareWords} + g * kDimension + m],
              trace_at({hints.data(), hints.data() + kDimension * kColumns}, kColumns, pack, g, m))
        << "pack " << pack << ", automorphism " << g << ", point " << m;
  }
}

// Squares and key masks of two packs, and what switches make of them.
class Chains {
 public:
  explicit Chains(SeededRandom& random) {
    fill_with_values(random, {squares_.begin(), squares_.end()});
    fill_with_values(random, {key_masks_.begin(), key_masks_.end()});
    // Of the first trace of all: coefficients whose digits are the largest that there are.
    Coefficients mask;
    for (size_t i = 0; i < kDimension; ++i) {
      mask[i] = i % 3 == 0   ? kPackingModulus / 2
                : i % 3 == 1 ? kPackingModulus / 2 + 1
                             : 0x7f7f7f80;
    }
    ntt_->forward(mask);
    std::ranges::copy(mask, squares_.begin() + (kOrbit - 1) * kDimension);
  }

  // Whether this many switches come out right.
  bool run(uint32_t count, const Options& options, Report& report) const {
    report = launch_with(options, dim3(2), kNttThreads, kKeySwitchSharedBytes, key_switch_down,
                         TableArgs{ring_.view(), squares_.data(), key_masks_.data(), tables_.data(),
                                   masks_.data(), count});
    for (size_t pack = 0; pack < 2; ++pack) {
      size_t power = kOrbit - 1;
      Coefficients mask = trace(pack, power);
      for (size_t number = 0; number < count; ++number) {
        if (!is_switched(pack, number, mask, trace(pack, --power))) return false;
      }
      ntt_->inverse(mask);
      if (row(masks_.data() + pack * kDimension) != mask) return false;
    }
    return true;
  }

 private:
  Coefficients trace(size_t pack, size_t power) const {
    return row(squares_.data() + (pack * kOrbit + power) * kDimension);
  }

  // Whether the table has the digits of `mask` as switch `number`; the next mask in its place.
  bool is_switched(size_t pack, size_t number, Coefficients& mask, Coefficients next) const {
    ntt_->inverse(mask);
    for (size_t k = 0; k < kDigits; ++k) {
      Coefficients digits, key_mask;
      for (size_t i = 0; i < kDimension; ++i) {
        digits[i] = kField.reduce_signed(ring::decompose(mask[i], kField)[k]);
      }
      ntt_->forward(digits);
      for (size_t point = 0; point < kDimension; ++point) {
        const size_t place =
            table_place(point / kPointsTogether, number, k) + point % kPointsTogether;
        if (tables_[pack * kTableWords + place] != digits[point]) return false;
      }
      // From 5^(1023 - number) to the power below.
      ring::apply({1022 - number}, row(key_masks_.data() + k * kDimension), key_mask);
      ntt_->add_products(digits, key_mask, next);
    }
    mask = next;
    return true;
  }
  static Coefficients row(const uint32_t* words) {
    Coefficients copied;
    std::copy_n(words, kDimension, copied.begin());
    return copied;
  }

  const HostRing ring_;
  const std::unique_ptr<const ring::Ntt> ntt_ = ring::portable_ntt(kPackingModulus);
  const Memory<uint32_t> squares_{2 * uint64_t{kPackSquareWords}}, key_masks_{ring::kKeyWords};
  const Memory<uint32_t> tables_{2 * kTableWords}, masks_{2 * kDimension};
};

TEST(CudaTableKernels, ChainsSwitchAsTheHostDoes) {
  SeededRandom random(533);
  Report report;
  EXPECT_TRUE(Chains(random).run(3, {}, report));
}

bool are_public_rows_right(const Options& options, Report& report) {
  constexpr uint32_t kRows = 2 * kRingWords, kQueries = 3;
  SeededRandom random(620);
  const Memory<uint32_t> blocks(random.words(kRows));
  const Memory<int8_t> memory(16 * kRows);
  const Limbs limbs{memory.data(), kRows};
  report = launch_with(options, dim3(2, kQueries), 128, 0, cut_public_rows, blocks.data(), limbs);
  for (uint32_t at = 0; at < kQueries * kRows; ++at) {
    // X^2048 is -1.
    const uint32_t row = at % kRows, place = at / kRows + row % kRingWords;
    const uint32_t word = blocks[row / kRingWords * kRingWords + place % kRingWords];
    if (word_at(limbs, at / kRows, row) != (place < kRingWords ? word : 0 - word)) return false;
  }
  return true;
}

// One pack, the first two coefficients, and those 1024 after them.
bool are_columns_right(const Options& options, Report& report) {
  constexpr uint64_t kColumns = kOrbit - 100;
  constexpr uint32_t kRows = 2;
  SeededRandom random(621);
  const HostRing ring;
  const Memory<uint32_t> hints(random.words((kOrbit + kRows) * kColumns));
  const Memory<uint32_t> squares(kRows * kDimension);
  report = launch_with(options, dim3(kRows), kNttThreads, kRowSharedBytes, ntt_columns,
                       TraceArgs{ring.view(), hints.data(), kColumns, squares.data()});
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
    if (!std::ranges::equal(row, std::span(squares.data() + i * kDimension, kDimension))) {
      return false;
    }
  }
  return true;
}

bool are_rows_right(const Options& options, Report& report) {
  constexpr uint32_t kRows = 3;
  SeededRandom random(622);
  const HostRing ring;
  const Memory<uint32_t> hints(1), squares(kRows * kDimension);
  fill_with_values(random, {squares.begin(), squares.end()});
  const std::vector<uint32_t> before(squares.begin(), squares.end());
  report = launch_with(options, dim3(kRows), kNttThreads, kRowSharedBytes, ntt_and_rotate_rows,
                       TraceArgs{ring.view(), hints.data(), 0, squares.data()});
  const auto ntt = ring::portable_ntt(kPackingModulus);
  for (uint32_t i = 0; i < kRows; ++i) {
    Coefficients values, turned;
    for (size_t half = 0; half < kDimension; half += kOrbit) {
      // Of 1024 coefficients, at the points of the same half.
      Coefficients of_half{};
      std::copy_n(before.data() + i * kDimension + half, kOrbit, of_half.begin());
      ntt->forward(of_half);
      std::copy_n(of_half.begin() + half, kOrbit, values.begin() + half);
    }
    ring::apply({i}, values, turned);
    if (!std::ranges::equal(turned, std::span(squares.data() + i * kDimension, kDimension))) {
      return false;
    }
  }
  return true;
}

// Of both squares of a pack, the blocks of 3 x 3 tiles.
bool are_squares_transposed(const Options& options, Report& report) {
  constexpr uint32_t kTiles = 3;
  const Memory<uint32_t> square(uint64_t{32} * kTiles * kRingWords);
  for (uint32_t i = 0; i < 32 * kTiles * kRingWords; ++i) square[i] = i;
  report = launch_with(options, dim3(kTiles, kTiles, 2), kTransposeThreads, kTransposeSharedBytes,
                       transpose_squares, square.data());
  for (uint32_t row = 0; row < 32 * kTiles; ++row) {
    for (uint32_t at = 0; at < 2 * 32 * kTiles; ++at) {
      const uint32_t column = at / 2, first = at % 2 * kOrbitWords;
      if (square[row * kRingWords + first + column] != column * kRingWords + first + row) {
        return false;
      }
    }
  }
  return true;
}

const Redundant kFirst{"ntt.cuh", "ntt_forward", Step::kBlockBarrier, 1, kOwnPlaces};
const bool kAdded =
    add_subjects({{"cut_public_rows", are_public_rows_right},
                  {"ntt_columns", are_columns_right, {kFirst}},
                  {"ntt_and_rotate_rows", are_rows_right, {kFirst}},
                  {"transpose_squares", are_squares_transposed},
                  {"key_switch_down",
                   [](const Options& options, Report& report) {
                     static SeededRandom random(623);
                     static const Chains problem(random);
                     return problem.run(2, options, report);
                   },
                   {kFirst, {"ntt.cuh", "ntt_inverse", Step::kBlockBarrier, 6, kOwnPlaces}}}});

}  // namespace
}  // namespace blindfuse::emulator
