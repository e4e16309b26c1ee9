// The noise of the second level as it is, next to the terms of docs/PARAMETERS.md, section 7.
//
// A mean of squares may be five standard deviations away from its formula. More happens by chance
// with probability 6 * 10^-7. Words beyond 3 and 4 sigma are counted, and there may be as many as a
// binomial count gives except with probability 5 * 10^-7. Seeds are fixed, so that what passes once
// always does. Of what the standard deviations consist, with N words of Q queries:
//
// - N words whose noise is normal and not correlated: 2 / N of a relative variance. The words of
//   one query are under one secret. Those of F4 have no correlation all the same: over all powers g
//   of a chain, the correlations of s(X^g), or of an error, with itself moved by less than K add up
//   to 0, and a chain leaves out one power alone. Those of F3 have one of d^-1/2 for each two
//   columns, in the mean of their squares: 2 (1 + columns / d) / N.
// - Each query has a variance of its own, which its numbers decide. F1 has R squares of e', whose
//   relative variance is below that of normal numbers, 2: 2 / (R Q). F3 has d squares of s, which
//   are 0 or 1: 0.5 / (d Q). F4 has those of s and of the three errors of a key, a quarter each:
//   0.125 / (d Q).
//
// Since queries have variances of their own, tails are a little heavier than a normal one. For the
// sum of all terms, these variances differ by less than 1.9 % here. That adds at most 1 % to the
// words beyond four standard deviations, and about as much to the standard deviation of their
// number. Both keep the probability of a false alarm below 10^-6.
#include "tests/packing/second_level_noise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "src/arithmetic/noise_budget.h"

namespace blindfuse {
namespace {

// A binomial count is below `least`, or above `most`, with a probability of at most `chance` each.
struct CountLimits {
  double least = 0;
  double most = 0;
};

CountLimits binomial_limits(double count, double probability, double chance) {
  CountLimits limits;
  double up_to = 0;  // the probability of at most `most`
  for (;; ++limits.most) {
    const double k = limits.most;
    up_to += std::exp(std::lgamma(count + 1) - std::lgamma(k + 1) - std::lgamma(count - k + 1) +
                      k * std::log(probability) + (count - k) * std::log1p(-probability));
    if (up_to <= chance) limits.least = k + 1;
    if (1 - up_to < chance) return limits;
  }
}

class SecondLevelNoise : public ::testing::TestWithParam<SecondNoiseCase> {
 protected:
  // A list of numbers that are noise, the variance that they should have, and the standard
  // deviation of what is measured over what is true.
  struct Term {
    std::string name;
    std::vector<double> samples;
    double variance;
    double deviation;

    double measured() const { return mean_square(samples); }
  };

  SecondLevelNoise()
      : queries_(static_cast<double>(GetParam().query_count)),
        words_(queries_ * GetParam().column_count()),
        row_errors_(queries_ * GetParam().row_count),
        found_(SecondNoiseQueries(GetParam()).ask()) {}

  static double mean_square(const std::vector<double>& samples) {
    double sum = 0;
    for (const double sample : samples) sum += sample * sample;
    return sum / static_cast<double>(samples.size());
  }

  // Of e', by the formula.
  double row_variance() const { return 2.0 / 3 + rounding_variance(GetParam().query_bits); }

  // F1 of the entries that there are.
  Term f1() const {
    double squares = 0;
    for (const double each : found_.entry_squares) squares += each / words_;
    return {"F1", found_.f1, squares * row_variance(), std::sqrt(2 / words_ + 2 / row_errors_)};
  }
  // Uniform numbers, whose squares have a smaller relative variance than those of normal ones.
  Term f2() const {
    return {"F2", found_.f2, rounding_variance(GetParam().response_bits), std::sqrt(2 / words_)};
  }
  Term f3() const {
    const double correlated = 1 + GetParam().column_count() / kDegree;
    return {"F3", found_.f3, kDegree * 2 / 3 * rounding_variance(GetParam().mask_bits),
            std::sqrt(2 * correlated / words_ + 0.5 / (kDegree * queries_))};
  }
  // Without the tenth.
  Term f4() const {
    const double digits = 3 * std::ldexp(1, 16) / 12, rest = std::ldexp(1, 16) / 12;
    return {"F4", found_.f4, key_switches() * kDegree * 2 / 3 * (digits + rest),
            std::sqrt(2 / words_ + 0.125 / (kDegree * queries_))};
  }
  // A word is what it is up to the response's rounding. The deviations are added as numbers are
  // that have all in common, whatever the terms do have.
  Term sum_of(const std::string& name, const std::vector<Term>& terms) const {
    Term sum{name, std::vector<double>(found_.f1.size()), 0, 0};
    for (const Term& term : terms) {
      for (size_t i = 0; i < sum.samples.size(); ++i) sum.samples[i] += term.samples[i];
      sum.variance += term.variance;
      sum.deviation += term.deviation * term.variance;
    }
    sum.deviation /= sum.variance;
    return sum;
  }
  Term of_words() const { return sum_of("F1 + F3 + F4", {f1(), f3(), f4()}); }

  void expect_variance(const Term& term) {
    EXPECT_NEAR(term.measured() / term.variance, 1, 5 * term.deviation) << term.name;
  }

  // What all words of a query have in common, because numbers that are cut off lie half a unit
  // below 0 in the mean: of entries, and of two of three digits and what they leave out. Of a
  // polynomial of s or an error times digits of -1/2 each, a chain adds up K of every K-th number.
  void expect_no_mean(const Term& term) {
    double mean = 0;
    for (const double sample : term.samples) mean += sample / words_;
    const double order = key_switches() + 1;
    const double common =
        GetParam().row_count * row_variance() / 4 + 3 * order * order / 4 * kDegree / order * 2 / 3;
    const double deviation = std::sqrt(term.variance / words_ + common / queries_);
    EXPECT_LE(std::fabs(mean), 5 * deviation) << term.name;
  }

  // Of numbers that should have variance 1.
  void expect_normal_tail(const std::string& name, const std::vector<double>& samples) {
    for (const double sigmas : {3.0, 4.0}) {
      double beyond = 0;
      for (const double sample : samples) beyond += std::fabs(sample) > sigmas;
      const double share = std::erfc(sigmas / std::sqrt(2));
      const CountLimits limits = binomial_limits(words_, share, 2.5e-7);
      EXPECT_GE(beyond, limits.least) << name << " beyond " << sigmas << " sigma";
      EXPECT_LE(beyond, limits.most) << name << " beyond " << sigmas << " sigma";
    }
  }

  double key_switches() const {
    return GetParam().key_order > 0 ? GetParam().key_order - 1.0 : 1023.0;
  }

  static constexpr double kDegree = 2048;  // d
  const double queries_;
  const double words_;
  const double row_errors_;
  const SecondNoiseTerms found_;
};

TEST_P(SecondLevelNoise, IsThatOfTheFormula) {
  expect_variance({"e'", found_.row_errors, row_variance(), std::sqrt(2 / row_errors_)});
  for (const Term& term : {f1(), f2(), f3(), f4()}) expect_variance(term);
  expect_variance(of_words());
  expect_variance(sum_of("F1 + F2 + F3 + F4", {f1(), f2(), f3(), f4()}));
  expect_no_mean(f4());
  expect_no_mean(of_words());

  double product = 0;
  for (size_t i = 0; i < found_.f1.size(); ++i) product += found_.f1[i] * found_.f4[i] / words_;
  const double correlation = product / std::sqrt(f1().measured() * f4().measured());
  EXPECT_NEAR(correlation, 0, 5 / std::sqrt(words_));

  std::vector<double> packing = found_.f4, all = of_words().samples;
  const double f3_and_f4 = f3().variance + f4().variance;
  for (size_t i = 0; i < all.size(); ++i) {
    packing[i] /= std::sqrt(f4().variance);
    all[i] /= std::sqrt(found_.entry_squares[i] * row_variance() + f3_and_f4);
  }
  expect_normal_tail("F4", packing);
  expect_normal_tail("F1 + F3 + F4", all);

  // What is reckoned with is more: the largest entries, and the tenth of F4.
  const SecondNoise reckoned = second_noise(
      GetParam().row_count, 1, GetParam().word_bits, GetParam().query_bits, GetParam().mask_bits,
      GetParam().response_bits, static_cast<uint32_t>(key_switches()));
  EXPECT_LE(f1().variance, reckoned.query_variance);
  EXPECT_DOUBLE_EQ(f3().variance, reckoned.mask_variance);
  EXPECT_NEAR(f4().variance * 1.1 / reckoned.packing_variance, 1, 1e-9);
  EXPECT_LT(f4().measured(), reckoned.packing_variance);
  EXPECT_LT(of_words().measured(),
            reckoned.query_variance + reckoned.mask_variance + reckoned.packing_variance);
  // Half a unit more, as a raised number is a whole one.
  for (const double f2 : found_.f2) ASSERT_LE(std::fabs(f2), reckoned.response_bound + 0.5);
}

std::string name_of_second_noise_case(const ::testing::TestParamInfo<SecondNoiseCase>& info) {
  return info.param.name;
}

// 102,400 words with each kind of key. The others have rows of two blocks, fewer words, and a sum
// of which the tenth is still more than five standard deviations.
INSTANTIATE_TEST_SUITE_P(
    All, SecondLevelNoise,
    ::testing::Values(
        SecondNoiseCase{"PackingKey", 512, 0, 10, 26, 19, 13, SecondEntries::kUniform, 100, 410},
        SecondNoiseCase{"PackingKeyWithLargestEntries", 2'500, 0, 12, 30, 19, 14,
                        SecondEntries::kLargest, 40, 420},
        SecondNoiseCase{"ShortKey", 512, 64, 10, 28, 21, 15, SecondEntries::kUniform, 1'600, 430},
        SecondNoiseCase{"ShortKeyWithLargestEntries", 2'500, 64, 11, 32, 21, 15,
                        SecondEntries::kLargest, 600, 440}),
    name_of_second_noise_case);

}  // namespace
}  // namespace blindfuse
