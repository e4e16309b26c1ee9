#include "src/arithmetic/ring/gadget.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "src/arithmetic/ring/modulus_switch.h"

namespace blindfuse::ring {
namespace {

constexpr int64_t kModulus = kPackingModulus;

TEST(Gadget, DigitsAreCloseAndSmall) {
  const PrimeField field(kPackingModulus);
  std::mt19937_64 generator(1);
  const auto check = [&](uint32_t x) {
    int64_t sum = 0;
    const auto found = decompose(x, field);
    for (size_t k = 0; k < kDigits; ++k) {
      EXPECT_GE(found[k], -128) << x;
      EXPECT_LE(found[k], k + 1 < kDigits ? 127 : 128) << x;
      sum += int64_t{found[k]} * gadget(k);
    }
    const int64_t apart =
        ((sum - x) % kModulus + kModulus + kModulus / 2) % kModulus - kModulus / 2;
    EXPECT_LE(std::abs(apart), 128) << x;
  };
  for (const uint32_t x : {0u, 1u, 127u, 128u, 129u, 32767u, 32768u, 0x7f7f80u, 0x7f808080u,
                           kPackingModulus / 2, kPackingModulus / 2 + 1, kPackingModulus - 129,
                           kPackingModulus - 128, kPackingModulus - 1}) {
    check(x);
  }
  for (int i = 0; i < 100'000; ++i) check(static_cast<uint32_t>(generator() % kPackingModulus));
}

TEST(Gadget, OfNumbersWorkedByHand) {
  const PrimeField field(kPackingModulus);
  using Digits = std::array<int32_t, kDigits>;
  EXPECT_EQ(decompose(0, field), (Digits{0, 0, 0}));
  EXPECT_EQ(decompose(0x100, field), (Digits{1, 0, 0}));
  EXPECT_EQ(decompose(0x17f, field), (Digits{1, 0, 0}));
  EXPECT_EQ(decompose(0x180, field), (Digits{2, 0, 0}));
  // 0x80 = 128 is -128 and a carry.
  EXPECT_EQ(decompose(0x8000, field), (Digits{-128, 1, 0}));
  EXPECT_EQ(decompose(kPackingModulus - 0x010203 * 0x100, field), (Digits{-3, -2, -1}));
}

TEST(ModulusSwitch, GoesToTheNearest) {
  EXPECT_EQ(switch_to_q(0), 0u);
  EXPECT_EQ(switch_to_q(1), 1u);
  // 2^31 Q / 2^32 = 2147477504.5, rounded up.
  EXPECT_EQ(switch_to_q(0x80000000u), 2147477505u);
  EXPECT_EQ(switch_to_q(0xffffffffu), kPackingModulus - 1);
  EXPECT_EQ(switch_from_q(0, 8), 0u);
  EXPECT_EQ(switch_from_q(kPackingModulus - 1, 8), 0u);
  // Q / 256 = 16777168.0039.
  EXPECT_EQ(switch_from_q(16777168, 8), 1u);
  EXPECT_EQ(switch_from_q(8388584, 8), 0u);
  EXPECT_EQ(switch_from_q(8388585, 8), 1u);
  EXPECT_EQ(switch_to_q(1, 8), 16777168u);
  EXPECT_EQ(switch_to_q(128, 8), 2147477505u);
}

// The definition of docs/PROTOCOL.md, section 14. A product of 32 bits each and Q fit in 64.
uint32_t lowered_by_division(uint32_t x, unsigned bits) {
  const uint64_t nearest = ((uint64_t{x} << bits) + kPackingModulus / 2) / kPackingModulus;
  return static_cast<uint32_t>(nearest % (uint64_t{1} << bits));
}

TEST(ModulusSwitch, LowersAsADivisionDoes) {
  std::mt19937_64 generator(4);
  for (unsigned bits = 1; bits <= 32; ++bits) {
    const auto check = [&](int64_t x) {
      if (x < 0 || x >= kModulus) return;
      const auto number = static_cast<uint32_t>(x);
      EXPECT_EQ(switch_from_q(number, bits), lowered_by_division(number, bits))
          << x << " to " << bits << " bits";
    };
    for (const int64_t x : {int64_t{0}, int64_t{1}, kModulus - 2, kModulus - 1}) check(x);
    for (int i = 0; i < 2'000; ++i) {
      check(static_cast<int64_t>(generator() % kPackingModulus));
      // Next to where the result changes: (k + 1/2) Q / 2^bits.
      const uint64_t half = generator() % (uint64_t{1} << (bits - 1)) * 2 + 1;
      const auto middle = static_cast<int64_t>((half * kPackingModulus) >> (bits + 1));
      for (int64_t x = middle - 2; x <= middle + 2; ++x) check(x);
    }
  }
}

TEST(ModulusSwitch, NearestByteIsLowerToEightBits) {
  for (uint64_t half = 0; half < 512; ++half) {
    const auto middle = static_cast<int64_t>(half * kPackingModulus / 512);
    for (int64_t x = middle - 300; x < middle + 300; ++x) {
      if (x < 0 || x >= kModulus) continue;
      const auto number = static_cast<uint32_t>(x);
      EXPECT_EQ(nearest_byte(number), switch_from_q(number, 8)) << x;
    }
  }
  std::mt19937_64 generator(3);
  for (int i = 0; i < 1'000'000; ++i) {
    const auto x = static_cast<uint32_t>(generator() % kPackingModulus);
    ASSERT_EQ(nearest_byte(x), switch_from_q(x, 8)) << x;
  }
}

}  // namespace
}  // namespace blindfuse::ring
