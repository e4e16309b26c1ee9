#include "src/arithmetic/ring/prime_field.h"

#include <gtest/gtest.h>

#include <random>

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

}  // namespace
}  // namespace blindfuse::ring
