#include "src/arithmetic/public_divisor.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "tests/reference_pir.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
constexpr uint32_t kDivisorMax = std::numeric_limits<uint32_t>::max();

static_assert(PublicDivisor(10).quotient(kMax) == kMax / 10);
static_assert(PublicDivisor(1).quotient(kMax) == kMax);
static_assert(PublicDivisor(kDivisorMax).remainder(kMax) == 0);  // 2^64 - 1 = (2^32 - 1)(2^32 + 1)

// The processor's own division says what is right.
testing::AssertionResult divides(const PublicDivisor& made, uint32_t divisor, uint64_t n) {
  if (made.quotient(n) == n / divisor && made.remainder(n) == n % divisor) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << n << " by " << divisor << " is " << made.quotient(n)
                                     << " and " << made.remainder(n) << " left";
}

// Divisors of each length: powers of two and their neighbours, and numbers without a pattern.
std::vector<uint32_t> divisors_of_each_length() {
  std::vector<uint32_t> all;
  for (unsigned bit = 0; bit < 32; ++bit) {
    const uint32_t power = 1u << bit;
    for (const uint32_t divisor : {power - 1, power, power + 1, power / 3 * 4 + 1}) {
      if (divisor > 0) all.push_back(divisor);
    }
  }
  for (const uint32_t divisor : {7u, 641u, 1'000u, 40'503u, 65'535u, 65'536u, 65'537u,
                                 1'000'000'007u, 2'863'311'531u, kDivisorMax - 1, kDivisorMax}) {
    all.push_back(divisor);
  }
  return all;
}

// Shards, and shards of a group, for every number of them that there can be.
static_assert(mulhi(UINT64_MAX, UINT64_MAX) == UINT64_MAX - 1);

TEST(Mulhi, AgreesWithSchoolMultiplication) {
  support::SeededRandom random(2);
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t a = random.u64() >> random.below(64);
    const uint64_t b = random.u64() >> random.below(64);
    ASSERT_EQ(mulhi(a, b), reference_pir::mulhi(a, b)) << a << " * " << b;
  }
}

TEST(PublicDivisor, IsExactAtTheEndsForEveryNumberOfShards) {
  for (uint32_t divisor = 1; divisor <= 65'536; ++divisor) {
    const PublicDivisor made(divisor);
    for (const uint64_t end : {uint64_t{65'536}, uint64_t{1} << 32, kMax}) {
      const uint64_t multiple = end / divisor * divisor;
      for (const uint64_t n : {multiple - divisor, multiple - 1, multiple, multiple + 1, end - 1}) {
        ASSERT_TRUE(divides(made, divisor, n));
      }
    }
  }
}

TEST(PublicDivisor, IsExactNextToMultiples) {
  for (const uint32_t divisor : divisors_of_each_length()) {
    const PublicDivisor made(divisor);
    for (unsigned bit = 0; bit < 64; ++bit) {
      const uint64_t power = uint64_t{1} << bit;
      const uint64_t multiple = power / divisor * divisor;
      for (const uint64_t n : {power - 1, power, power + 1, multiple - 1, multiple, multiple + 1,
                               multiple + divisor - 1, multiple + divisor}) {
        ASSERT_TRUE(divides(made, divisor, n));
      }
    }
    const uint64_t last = kMax / divisor * divisor;
    for (const uint64_t n : {last - 1, last, kMax - 1, kMax}) {
      ASSERT_TRUE(divides(made, divisor, n));
    }
  }
}

}  // namespace
}  // namespace blindfuse
