#include "src/arithmetic/ring/ntt.h"

#include <gtest/gtest.h>

#include "src/arithmetic/ring/automorphism.h"
#include "tests/ring/plain_ring.h"

namespace blindfuse::ring {
namespace {

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

// The sum over the powers of 5 is 1024 times the constant term and that of X^1024.
TEST(PlainRing, TraceLeavesTwoTerms) {
  const PrimeField field(kPackingModulus);
  const Coefficients a = plain::random_coefficients(5, kPackingModulus);
  Coefficients sum{};
  for (size_t i = 0; i < kOrbit; ++i) {
    const Coefficients moved = plain::moved(a, i, kPackingModulus);
    for (size_t j = 0; j < kDimension; ++j) sum[j] = field.add(sum[j], moved[j]);
  }
  Coefficients expected{};
  for (const size_t term : {size_t{0}, kOrbit}) expected[term] = field.multiply(a[term], kOrbit);
  EXPECT_EQ(sum, expected);
}

}  // namespace
}  // namespace blindfuse::ring
