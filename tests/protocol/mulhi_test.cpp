#include "src/arithmetic/public_divisor.h"

#include <gtest/gtest.h>

#include "tests/reference_pir.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

static_assert(mulhi(UINT64_MAX, UINT64_MAX) == UINT64_MAX - 1);

TEST(Mulhi, IsTheUpperHalfOfTheProduct) {
  EXPECT_EQ(mulhi(0, UINT64_MAX), 0u);
  EXPECT_EQ(mulhi(1, UINT64_MAX), 0u);
  EXPECT_EQ(mulhi(2, UINT64_MAX), 1u);
  EXPECT_EQ(mulhi(uint64_t{1} << 32, uint64_t{1} << 32), 1u);
  EXPECT_EQ(mulhi((uint64_t{1} << 32) - 1, uint64_t{1} << 32), 0u);
  EXPECT_EQ(mulhi(uint64_t{1} << 63, 6), 3u);
}

TEST(Mulhi, AgreesWithSchoolMultiplication) {
  support::SeededRandom random(2);
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t a = random.u64() >> random.below(64);
    const uint64_t b = random.u64() >> random.below(64);
    ASSERT_EQ(mulhi(a, b), reference_pir::mulhi(a, b)) << a << " * " << b;
  }
}

}  // namespace
}  // namespace blindfuse
