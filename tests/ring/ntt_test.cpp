#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "src/arithmetic/ring/automorphism.h"
#include "src/arithmetic/ring/ntt.h"
#include "src/arithmetic/ring/prime_field.h"
#include "tests/ring/plain_ring.h"

namespace blindfuse::ring {
namespace {

constexpr uint32_t kModuli[] = {kPackingModulus, kSecondModulus};

// Trial division up to the square root.
bool is_prime(uint64_t n) {
  for (uint64_t i = 2; i * i <= n; ++i) {
    if (n % i == 0) return false;
  }
  return n > 1;
}

TEST(PrimeField, ModuliArePrimesWithEnoughRoots) {
  for (const uint32_t modulus : kModuli) {
    EXPECT_TRUE(is_prime(modulus)) << modulus;
    EXPECT_EQ(modulus % 4096, 1u);
  }
  // The largest two of their kind.
  for (uint64_t other = (uint64_t{1} << 32) - 4095; other > kSecondModulus; other -= 4096) {
    EXPECT_EQ(is_prime(other), other == kPackingModulus) << other;
  }
}

TEST(PrimeField, ComputesAsIntegersDo) {
  std::mt19937_64 generator(1);
  for (const uint32_t modulus : kModuli) {
    const PrimeField field(modulus);
    EXPECT_EQ(field.inverse_of_modulus() * modulus, 1u);
    const uint64_t edges[] = {0, 1, 2, modulus / 2, modulus / 2 + 1, modulus - 2, modulus - 1};
    const auto check = [&](uint64_t a, uint64_t b) {
      const auto x = static_cast<uint32_t>(a);
      const auto y = static_cast<uint32_t>(b);
      EXPECT_EQ(field.add(x, y), (a + b) % modulus);
      EXPECT_EQ(field.subtract(x, y), (a + modulus - b) % modulus);
      EXPECT_EQ(field.multiply(x, y), a * b % modulus);
      EXPECT_EQ(MontgomeryConstant::of(y, field).times(x, field), a * b % modulus);
    };
    for (const uint64_t a : edges) {
      for (const uint64_t b : edges) check(a, b);
    }
    for (int i = 0; i < 1000; ++i) check(generator() % modulus, generator() % modulus);
  }
}

TEST(PrimeField, FactorsTakeAnyWord) {
  for (const uint32_t modulus : kModuli) {
    const PrimeField field(modulus);
    for (const uint32_t x : {modulus, modulus + 1, 0xffffffffu}) {
      for (const uint32_t w : {0u, 1u, 12345u, modulus - 1}) {
        EXPECT_EQ(MontgomeryConstant::of(w, field).times(x, field),
                  static_cast<uint64_t>(x) * w % modulus);
      }
    }
  }
}

TEST(PrimeField, InvertsAndCenters) {
  const PrimeField field(kPackingModulus);
  for (const uint32_t a : {1u, 2u, 2048u, kPackingModulus - 1, 1'000'003u}) {
    EXPECT_EQ(field.multiply(a, field.inverse(a)), 1u);
  }
  EXPECT_EQ(field.centered(0), 0);
  EXPECT_EQ(field.centered(kPackingModulus - 1), -1);
  EXPECT_EQ(field.centered(kPackingModulus / 2), kPackingModulus / 2);
  EXPECT_EQ(field.centered(kPackingModulus / 2 + 1), -static_cast<int64_t>(kPackingModulus / 2));
  EXPECT_EQ(field.reduce_signed(-1), kPackingModulus - 1);
  EXPECT_EQ(field.reduce_signed(7), 7u);
  EXPECT_EQ(field.reduce_signed(-0x7fffffff - 1), kPackingModulus - 0x80000000u);
}

using plain::Coefficients;

class Transforms : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t modulus() const { return GetParam(); }
  Coefficients random(uint64_t seed) const { return plain::random_coefficients(seed, modulus()); }
  Coefficients forward(Coefficients a) const {
    ntt_->forward(a);
    return a;
  }
  // The exponents of w at the points: the orbit of 5, and its negatives.
  static std::vector<uint32_t> exponents() {
    std::vector<uint32_t> made;
    for (uint32_t e = 1; made.size() < kOrbit; e = e * 5 % kOrder) made.push_back(e);
    for (size_t k = 0; k < kOrbit; ++k) made.push_back(kOrder - made[k]);
    return made;
  }

  const std::unique_ptr<const Ntt> ntt_ = portable_ntt(GetParam());
};

TEST_P(Transforms, RootHasOrder4096) {
  EXPECT_EQ(plain::power(root_of_unity(ntt_->field()), kDimension, modulus()), modulus() - 1);
}

TEST_P(Transforms, GivesValuesAtThePoints) {
  const Coefficients a = random(1);
  const Coefficients values = forward(a);
  const std::vector<uint32_t> powers = exponents();
  for (size_t k = 0; k < kDimension; k += 13) {
    const uint64_t point = plain::power(root_of_unity(ntt_->field()), powers[k], modulus());
    EXPECT_EQ(values[k], plain::value_at(a, point, modulus())) << k;
  }
}

TEST_P(Transforms, GoesThereAndBack) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const Coefficients a = random(seed);
    Coefficients b = forward(a);
    ntt_->inverse(b);
    EXPECT_EQ(a, b);
  }
  Coefficients largest;
  largest.fill(modulus() - 1);
  Coefficients b = forward(largest);
  ntt_->inverse(b);
  EXPECT_EQ(b, largest);
}

TEST_P(Transforms, MultipliesPointByPoint) {
  const Coefficients a = random(2);
  const Coefficients b = random(3);
  const Coefficients x = forward(a);
  const Coefficients y = forward(b);
  Coefficients z;
  for (size_t i = 0; i < kDimension; ++i) z[i] = ntt_->field().multiply(x[i], y[i]);
  ntt_->inverse(z);
  EXPECT_EQ(z, plain::product(a, b, modulus()));
}

TEST_P(Transforms, AutomorphismsTurnTheHalves) {
  const Coefficients a = random(4);
  const Coefficients values = forward(a);
  for (const size_t power : {size_t{0}, size_t{1}, size_t{2}, size_t{500}, kOrbit - 1}) {
    Coefficients turned;
    apply({power}, Polynomial(values), MutablePolynomial(turned));
    EXPECT_EQ(turned, forward(plain::moved(a, power, modulus()))) << power;
  }
}

INSTANTIATE_TEST_SUITE_P(Moduli, Transforms, ::testing::Values(kPackingModulus, kSecondModulus));

// By hand.
TEST(PlainRing, MovesAMonomialToItsPower) {
  Coefficients x{};
  x[3] = 1;
  EXPECT_EQ(plain::moved(x, 1, kPackingModulus)[15], 1u);
  // X^(3 * 3125) = X^(9375 - 2 * 4096) = X^1183.
  EXPECT_EQ(plain::moved(x, 5, kPackingModulus)[1183], 1u);
  // X^(600 * 5) = -X^952.
  x = {};
  x[600] = 1;
  EXPECT_EQ(plain::moved(x, 1, kPackingModulus)[952], kPackingModulus - 1);
}

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
