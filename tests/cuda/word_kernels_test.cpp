// The CUDA kernels before and after a product, run by the emulator: query words cut into limbs, in
// every order and every width of what crosses the network, products rounded, and the weighted sums
// that products are checked with.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "src/arithmetic/bit_sequence.h"
#include "tests/cuda/emulator.h"
#include "tests/cuda/kernel_support.h"
#include "tests/support.h"

#include "cuda/scan/kernels/cut_words.cuh"
#include "cuda/scan/kernels/round_products.cuh"
#include "cuda/scan/kernels/weigh.cuh"

namespace blindfuse::emulator {
namespace {

using support::SeededRandom;

// The word that four limbs in rows add up to.
uint32_t word_at(const Limbs& limbs, uint32_t query, uint64_t row) {
  uint32_t sum = 0;
  for (uint32_t l = 0; l < 4; ++l) {
    const int8_t limb = limbs.bytes[limb_row(query, l) * limbs.pitch + row];
    sum += static_cast<uint32_t>(int32_t{limb}) << 8 * l;
  }
  return sum;
}

bool do_limbs_add_up(uint64_t rows, uint32_t lead, uint32_t queries, const Options& options,
                     Report& report) {
  SeededRandom random(501);
  const Memory<uint32_t> words(random.words(rows * queries));
  const uint64_t pitch = uint64_t{blocks_for(lead + rows, kStepRows)} * kStepRows;
  const Memory<int8_t> memory(pitch * 32);
  const Limbs limbs{memory.data(), pitch};
  report = launch_with(options, dim3(blocks_for(pitch / kRowsPerThread, 32), queries), 32, 0,
                       cut_plain_words, PlainWords{words.data(), rows, 64, rows, lead}, limbs);
  for (uint32_t q = 0; q < queries; ++q) {
    for (uint64_t at = 0; at < pitch; ++at) {
      const bool counts = at >= lead && at < lead + rows;
      if (word_at(limbs, q, at) != (counts ? words[q * rows + at - lead] : 0)) return false;
    }
  }
  return true;
}

TEST(CudaLimbs, LimbsAddUpToTheirWords) {
  Report report;
  EXPECT_TRUE(do_limbs_add_up(1, 0, 7, {}, report));
  EXPECT_TRUE(do_limbs_add_up(127, 1, 7, {}, report));
  EXPECT_TRUE(do_limbs_add_up(300, 100, 7, {}, report));
}

// Whether they are cut, and added up, weighted, where that is asked for.
bool are_sequences_cut(uint32_t bits, uint64_t rows, bool is_checked, const Options& options,
                       Report& report) {
  SeededRandom random(503);
  constexpr uint32_t kQueries = 3;
  const uint64_t words_each = bit_sequence_bytes(rows, bits) / 4 + 1;
  const Memory<uint32_t> packed(random.words(kQueries * words_each));
  const uint64_t pitch = uint64_t{blocks_for(rows, kStepRows)} * kStepRows;
  const Memory<int8_t> memory(pitch * 16);
  const Limbs limbs{memory.data(), pitch};
  const Memory<uint32_t> weights(random.words(pitch)), sums(kQueries);
  std::ranges::fill(sums, bits);
  const uint32_t blocks = blocks_for(pitch / kRowsPerThread, 32);
  report = launch_with(options, dim3(blocks, kQueries), 32, 0, cut_bit_sequences,
                       BitSequences{packed.data(), words_each, bits, rows}, limbs,
                       is_checked ? QuerySums{weights.data(), sums.data()} : QuerySums{});
  for (uint32_t q = 0; q < kQueries; ++q) {
    uint32_t weighted = bits + (is_checked ? blocks : 0);
    for (uint64_t r = 0; r < pitch; ++r) {
      uint32_t word = 0;  // bit by bit
      for (uint32_t b = 0; b < bits && r < rows; ++b) {
        const uint64_t at = r * bits + b;
        word |= (packed[q * words_each + at / 32] >> at % 32 & 1) << (32 - bits + b);
      }
      if (word_at(limbs, q, r) != word) return false;
      if (is_checked) weighted += word * weights[r];
    }
    if (sums[q] != weighted) return false;
  }
  return true;
}

TEST(CudaLimbs, CutsPackedWordsOfEveryWidth) {
  Report report;
  for (uint32_t bits = 1; bits <= 32; ++bits) {
    EXPECT_TRUE(are_sequences_cut(bits, 64 * (1 + bits % 5), bits % 4 != 3, {}, report)) << bits;
  }
}

// What the server does on the host.
bool are_products_rounded(uint32_t bits, const Options& options, Report& report) {
  SeededRandom random(509);
  const auto columns = static_cast<uint32_t>(random.between(33 + bits, 200));
  constexpr uint32_t kQueries = 2;
  const Memory<uint32_t> products(random.words(kQueries * columns));
  // Ties, of even and of odd numbers.
  for (uint32_t c = 0; c < columns && bits < 32; c += 3) {
    products[c] = (products[c] | 1u << (31 - bits)) & ~((1u << (31 - bits)) - 1);
  }
  const uint64_t pitch = uint64_t{blocks_for(columns, 32)} * bits;
  const Memory<uint32_t> packed(kQueries * pitch);
  report = launch_with(options, dim3(blocks_for(blocks_for(columns, 32), 32), kQueries), 32, 0,
                       round_products,
                       RoundArgs{products.data(), columns, columns, bits, packed.data(), pitch});
  for (uint32_t q = 0; q < kQueries; ++q) {
    std::vector<uint8_t> expected(bit_sequence_bytes(columns, bits));
    write_bit_sequence(std::span(products.data() + q * columns, columns), bits, expected);
    if (std::memcmp(packed.data() + q * pitch, expected.data(), expected.size()) != 0) {
      return false;
    }
  }
  return true;
}

TEST(CudaProducts, AreRoundedToEveryWidth) {
  Report report;
  for (uint32_t bits = 1; bits <= 32; ++bits) {
    EXPECT_TRUE(are_products_rounded(bits, {}, report)) << bits << " bits";
  }
}

bool is_matrix_weighed(uint64_t steps, uint32_t columns, const Options& options, Report& report) {
  SeededRandom random(520);
  const uint64_t pitch = steps * kStepRows;
  const Memory<uint8_t> bytes(random.octets(pitch * columns));
  const Memory<uint32_t> weights(random.words(columns)), vector(pitch);
  std::ranges::fill(vector, 5u);
  const auto* const matrix = reinterpret_cast<const int8_t*>(bytes.data());
  report = launch_with(options,
                       dim3(blocks_for(columns, kWeighedColumns),
                            blocks_for(pitch / kRowsPerThread, kWeighColumnsThreads)),
                       kWeighColumnsThreads, 0, weigh_columns,
                       WeighColumnsArgs{matrix, pitch, columns, weights.data(), vector.data()});
  for (uint64_t r = 0; r < pitch; ++r) {
    uint32_t sum = 5;
    for (uint64_t c = 0; c < columns; ++c) {
      sum += weights[c] * static_cast<uint32_t>(int32_t{matrix[c * pitch + r]});
    }
    if (vector[r] != sum) return false;
  }
  return true;
}

TEST(CudaWeighing, MultipliesTheMatrixWithWeights) {
  Report report;
  for (const auto& [steps, columns] : {std::pair<uint64_t, uint32_t>{1, 1},
                                       {1, 7},
                                       {17, 8},
                                       {2, 255},
                                       {1, 256},
                                       {3, 257},
                                       {1, 520}}) {
    EXPECT_TRUE(is_matrix_weighed(steps, columns, {}, report)) << columns << " columns";
  }
}

class WeighingOfProducts {
 public:
  // A word of each query after its products, which is not one of them.
  static constexpr uint32_t kQueries = 3, kColumns = 9'001;
  static constexpr uint64_t kPitch = kColumns + 1;
  static constexpr uint32_t kCutWarps = 19;

  WeighingOfProducts() {
    for (uint32_t& product : products_) product = random_.u32();
    for (uint32_t& weight : weights_) weight = random_.u32() | 1;
    for (uint32_t& sum : sums_) sum = random_.u32();
  }

  Report weigh(uint32_t columns, const Options& options = {}) const {
    std::ranges::fill(differences_, 7u);
    return launch_with(options, kQueries, kWeighProductsThreads, kWeighProductsSharedBytes,
                       weigh_products,
                       WeighProductsArgs{products_.data(), kPitch, columns, weights_.data(),
                                         sums_.data(), kCutWarps, differences_.data()});
  }

  // Whether each is the sum less that of the query.
  bool is_right(uint32_t columns) const {
    for (uint32_t q = 0; q < kQueries; ++q) {
      uint32_t sum = kCutWarps - sums_[q];
      for (uint64_t c = 0; c < columns; ++c) sum += products_[q * kPitch + c] * weights_[c];
      if (differences_[q] != sum) return false;
    }
    return true;
  }

 private:
  SeededRandom random_{521};
  const Memory<uint32_t> products_{kQueries * kPitch}, weights_{kColumns}, sums_{kQueries},
      differences_{kQueries};
};

TEST(CudaWeighing, OfProductsIsTheSumLessThatOfTheQuery) {
  const WeighingOfProducts problem;
  for (const uint32_t columns : {1u, 31u, 33u, 511u, 512u, 513u, 4'096u, 4'097u, 9'001u}) {
    problem.weigh(columns);
    ASSERT_TRUE(problem.is_right(columns)) << columns << " columns";
  }
}

const bool kAdded = add_subjects(
    {{"cut_plain_words",
      [](const Options& options, Report& report) {
        return do_limbs_add_up(900, 0, 2, options, report);
      }},
     {"cut_bit_sequences",
      [](const Options& options, Report& report) {
        return are_sequences_cut(13, 1024, true, options, report);
      }},
     {"round_products", [](const Options& options,
                           Report& report) { return are_products_rounded(16, options, report); }},
     {"weigh_columns",
      [](const Options& options, Report& report) {
        return is_matrix_weighed(5, kWeighedColumns + 3, options, report);
      }},
     {"weigh_products", [](const Options& options, Report& report) {
        const WeighingOfProducts problem;
        report = problem.weigh(700, options);
        return problem.is_right(700);
      }}});

}  // namespace
}  // namespace blindfuse::emulator
