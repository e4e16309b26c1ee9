#include "src/arithmetic/ring/ntt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/ring/plain_ring.h"

namespace blindfuse::ring {
namespace {

using plain::Coefficients;
using Small = std::array<int8_t, kDimension>;
constexpr uint64_t kWords = uint64_t{1} << 32;

// Small numbers as words modulo 2^32.
Coefficients as_words(const Small& numbers) {
  Coefficients made;
  std::transform(numbers.begin(), numbers.end(), made.begin(),
                 [](int8_t n) { return static_cast<uint32_t>(static_cast<int32_t>(n)); });
  return made;
}

Small random_small(uint64_t seed, int least, int most) {
  std::mt19937_64 generator(seed);
  std::uniform_int_distribution<int> number(least, most);
  Small made;
  for (int8_t& each : made) each = static_cast<int8_t>(number(generator));
  return made;
}

class Products : public ::testing::Test {
 protected:
  void add(const Coefficients& a, const Small& b) {
    CrtResidues x, y;
    exact_.forward_words(Polynomial(a), x);
    exact_.forward_small(std::span<const int8_t, kDimension>(b), y);
    exact_.add_product(x, y, sum_);
  }
  Coefficients words() {
    Coefficients made;
    exact_.to_words(sum_, MutablePolynomial(made));
    return made;
  }

  const CrtNtt exact_;
  CrtResidues sum_{};
};

TEST_F(Products, OfATernarySecret) {
  const Coefficients a = plain::random_coefficients(1, kWords);
  const Small s = random_small(2, -1, 1);
  add(a, s);
  EXPECT_EQ(words(), plain::product(a, as_words(s), kWords));
}

TEST_F(Products, SumsOfSeveral) {
  Coefficients expected{};
  for (uint64_t j = 0; j < 3; ++j) {
    const Coefficients a = plain::random_coefficients(10 + j, kWords);
    const Small column = random_small(20 + j, -128, 127);
    add(a, column);
    const Coefficients each = plain::product(a, as_words(column), kWords);
    for (size_t i = 0; i < kDimension; ++i) expected[i] += each[i];
  }
  EXPECT_EQ(words(), expected);
}

// As large as sums may become: 8192 products of -2^31 and -128, which add up to 2^62 in the last
// coefficient and to nearly -2^62 in the first.
TEST_F(Products, AreExactAtTheBound) {
  Coefficients a;
  a.fill(0x80000000u);
  Small b;
  b.fill(-128);
  CrtResidues x, y, one{};
  exact_.forward_words(Polynomial(a), x);
  exact_.forward_small(std::span<const int8_t, kDimension>(b), y);
  exact_.add_product(x, y, one);
  // 2^38 times 2 i + 2 - 2048 in coefficient i, 8192 times; modulo 2^32 all are 0, so one word more
  // tells whether the sum was mistaken for another by a multiple of the primes' product.
  for (int i = 0; i < 8192; ++i) {
    for (size_t k = 0; k < kDimension; ++k) {
      sum_.first[k] = PrimeField(kPackingModulus).add(sum_.first[k], one.first[k]);
      sum_.second[k] = PrimeField(kSecondModulus).add(sum_.second[k], one.second[k]);
    }
  }
  Coefficients unit{};
  unit[0] = 1;
  add(unit, Small{7});
  Coefficients expected{};
  expected[0] = 7;
  EXPECT_EQ(words(), expected);
}

}  // namespace
}  // namespace blindfuse::ring
