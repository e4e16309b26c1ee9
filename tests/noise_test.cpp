// The noise as it is, compared with NoiseBudget.
//
// Rounding errors and noise are measured through the product's own round_word and restore_word, on
// fixed seeds. A variance measured on N samples of a sum of many errors has a relative standard
// deviation of sqrt(2 / N) (they are normal, near enough); every comparison allows five of those
// and says how many samples it took.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/layout.h"
#include "tests/reference_pir.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using support::SeededRandom;

// restore(round(word)) - word, as the signed number that it is.
int32_t rounding_error(uint32_t word, uint32_t bits) {
  return static_cast<int32_t>(restore_word(round_word(word, bits), bits) - word);
}

struct Moments {
  double mean = 0;
  double variance = 0;  // about zero, where the true mean is
};

Moments moments_of(const std::vector<double>& samples) {
  Moments moments;
  const auto count = static_cast<double>(samples.size());
  for (const double sample : samples) {
    moments.mean += sample / count;
    moments.variance += sample * sample / count;
  }
  return moments;
}

// Expects N samples of a sum of errors to have mean 0 and this variance, and their tail to stay
// below the bound 2 exp(-t^2 / (2 variance)) as far out as that allows five samples or more, where
// chance cannot decide: a normal tail is a fifth of the bound, or less.
void expect_noise(const std::vector<double>& samples, double variance) {
  const auto count = static_cast<double>(samples.size());
  const Moments moments = moments_of(samples);
  EXPECT_NEAR(moments.mean, 0, 5 * std::sqrt(variance / count));
  EXPECT_NEAR(moments.variance / variance, 1, 5 * std::sqrt(2 / count));
  for (const double sigmas : {1.5, 2.0, 2.5, 3.0, 3.5, 4.0}) {
    const double allowed = count * 2 * std::exp(-sigmas * sigmas / 2);
    ASSERT_GE(allowed, 5) << "too few samples for " << sigmas << " sigma";
    const double t = sigmas * std::sqrt(variance);
    double beyond = 0;
    for (const double sample : samples) beyond += std::fabs(sample) > t;
    EXPECT_LE(beyond, allowed) << "beyond " << sigmas << " sigma";
  }
}

// E1 for the worst data, a column of -128 only: 20,000 queries of 512 rows. Before rounding a
// query's words are uniform, which is what LWE says of them. Errors are ternary, or uniform on
// -4..4; rounding hides how wide they are below 31 bits.
TEST(Noise, OfQueriesIsThatOfTheBudget) {
  SeededRandom random(401);
  constexpr uint64_t kRows = 512;
  for (const auto& [widest, bits] :
       {std::pair(1u, 24u), {1u, 27u}, {1u, 31u}, {1u, 32u}, {4u, 27u}, {4u, 31u}, {4u, 32u}}) {
    SCOPED_TRACE(std::to_string(bits) + " bits, errors up to " + std::to_string(widest));
    std::vector<double> samples(20'000);
    for (double& sample : samples) {
      int64_t sum = 0;
      for (uint64_t r = 0; r < kRows; ++r) {
        const int e = static_cast<int>(random.below(2 * widest + 1)) - static_cast<int>(widest);
        const uint32_t word = random.u32();  // of s * A
        sum += e + rounding_error(word + static_cast<uint32_t>(e), bits);
      }
      sample = -128.0 * static_cast<double>(sum);
    }
    expect_noise(samples, noise_budget(kRows, 1288, 1, bits, 32, 32, 0, widest).query_variance);
  }
}

// E3: 10,000 columns of hint, with a secret for each.
TEST(Noise, OfHintsIsThatOfTheBudget) {
  SeededRandom random(402);
  for (const LweParams& lwe : lwe_params()) {
    for (const uint32_t bits : {16u, 19u}) {
      SCOPED_TRACE(std::string(lwe.name) + ", " + std::to_string(bits) + " bits");
      std::vector<double> samples(10'000);
      for (double& sample : samples) {
        for (uint32_t k = 0; k < lwe.dimension; ++k) {
          sample += random.ternary() * rounding_error(random.u32(), bits);
        }
      }
      expect_noise(samples, noise_budget(1, lwe.dimension, 1, 32, 32, bits).hint_variance);
    }
  }
}

// The whole path, with a real public matrix and real secrets: 300 queries of 256 rows, each read at
// 32 columns.
class NoiseOfLookups : public testing::Test {
 protected:
  static constexpr size_t kRows = 256;
  static constexpr size_t kColumns = 32;
  static constexpr uint32_t kDimension = 1288;
  static constexpr int kQueries = 300;

  // A column of -128, one of 127, and random ones.
  NoiseOfLookups() : random_(404), matrix_(kRows, kColumns) {
    for (size_t c = 0; c < kColumns; ++c) {
      for (size_t r = 0; r < kRows; ++r) {
        matrix_.at(r, c) = c == 0 ? 0x80 : c == 1 ? 0x7f : random_.byte();
      }
    }
    reference_pir::Bytes seed(32);
    for (uint8_t& byte : seed) byte = random_.byte();
    a_ = reference_pir::public_matrix(seed, kDimension, kRows);
    hint_ = reference_pir::hint(a_, matrix_);
  }

  // The sum of squares of a column's bytes as products read them.
  double squares_of(size_t column) const {
    double sum = 0;
    for (size_t r = 0; r < kRows; ++r) {
      const auto entry = static_cast<int32_t>(matrix_.word_at(r, column));
      sum += double(entry) * entry;
    }
    return sum;
  }

  // phase - 2^24 * byte of every column, for a fresh query of a random row.
  std::vector<int32_t> errors_of_query(uint32_t query_bits, uint32_t response_bits,
                                       uint32_t hint_bits) {
    const auto s = random_.ternaries(kDimension);
    const auto e = random_.ternaries(kRows);
    const size_t row = random_.below(kRows);
    auto query = reference_pir::encrypt(a_, s, e, reference_pir::selection({row}, kRows));
    for (uint32_t& word : query) word += static_cast<uint32_t>(rounding_error(word, query_bits));
    auto response = reference_pir::multiply(query, matrix_);
    for (uint32_t& word : response) {
      word += static_cast<uint32_t>(rounding_error(word, response_bits));
    }
    auto hint = hint_;
    for (uint32_t& word : hint) word += static_cast<uint32_t>(rounding_error(word, hint_bits));
    const auto phases = reference_pir::phases(response, 0, kColumns, hint, s);
    std::vector<int32_t> errors;
    for (size_t c = 0; c < kColumns; ++c) {
      errors.push_back(static_cast<int32_t>(phases[c] - (uint32_t{matrix_.at(row, c)} << 24)));
    }
    return errors;
  }

  SeededRandom random_;
  reference_pir::Matrix matrix_;
  reference_pir::PublicMatrix a_;
  reference_pir::Words hint_;
};

// Each column's errors, divided by what its own bytes lead to expect: 9,600 samples, which leaves
// 1.4 % to chance.
TEST_F(NoiseOfLookups, IsThatOfTheBudget) {
  for (const auto& [query_bits, hint_bits] : {std::pair{25u, 17u}, {24u, 32u}, {32u, 18u}}) {
    SCOPED_TRACE(std::to_string(query_bits) + " and " + std::to_string(hint_bits) + " bits");
    const NoiseBudget budget = noise_budget(kRows, kDimension, kColumns, query_bits, 32, hint_bits);
    std::vector<double> samples;
    double largest = 0;
    for (int i = 0; i < kQueries; ++i) {
      const auto errors = errors_of_query(query_bits, 32, hint_bits);
      for (size_t c = 0; c < kColumns; ++c) {
        const double worst = 128.0 * 128.0 * kRows;
        const double variance =
            budget.query_variance * squares_of(c) / worst + budget.hint_variance;
        samples.push_back(errors[c] / std::sqrt(variance));
        largest = std::max(largest, std::fabs(errors[c]));
      }
    }
    EXPECT_NEAR(moments_of(samples).variance, 1, 0.08);
    // The budget is for the worst data, so it is never below what is measured.
    const double deviation = std::sqrt(budget.query_variance + budget.hint_variance);
    EXPECT_LT(largest, 6 * deviation);
    std::printf("largest error %.2f of the budget's standard deviations\n", largest / deviation);
  }
}

// A layout at the edge of what is allowed still decodes every byte: 2^-40 against 9,600 bytes.
TEST_F(NoiseOfLookups, DecodesAtTheEdgeOfTheBudget) {
  const NoiseBudget budget = noise_budget(kRows, kDimension, kColumns, 24, 9, 17);
  ASSERT_LT(budget.log2_failure, kFailureLog2Max);
  for (int i = 0; i < kQueries; ++i) {
    for (const int32_t error : errors_of_query(24, 9, 17)) {
      ASSERT_LT(std::fabs(error), 8'388'608.0);
    }
  }
}

}  // namespace
}  // namespace blindfuse
