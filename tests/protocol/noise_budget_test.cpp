#include "src/arithmetic/noise_budget.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "src/arithmetic/bit_sequence.h"

namespace blindfuse {
namespace {

// The error of rounding depends on the word's lowest 32-bits bits and, for a tie, on the one above:
// over all words of those its mean is zero and its variance the stated one, exactly.
TEST(RoundingVariance, IsThatOfAllWords) {
  EXPECT_EQ(rounding_variance(32), 0.0);
  for (uint32_t bits = 16; bits <= 31; ++bits) {
    const uint64_t words = uint64_t{2} << (32 - bits);
    int64_t sum = 0;
    uint64_t sum_of_squares = 0;
    for (uint64_t word = 0; word < words; ++word) {
      const auto low = static_cast<uint32_t>(word);
      const int64_t error = static_cast<int32_t>(restore_word(round_word(low, bits), bits) - low);
      sum += error;
      sum_of_squares += static_cast<uint64_t>(error * error);
    }
    EXPECT_EQ(sum, 0) << bits;
    const double variance = static_cast<double>(sum_of_squares) / static_cast<double>(words);
    EXPECT_DOUBLE_EQ(rounding_variance(bits), variance) << bits;
  }
}

// Computed with exact fractions and 30 decimal digits, away from this program. With
// v(bits) = (4^(32-bits) + 2) / 12:
//   query_variance = 2^14 R (2/3 + v(query_bits))
//   hint_variance  = (2/3) n v(hint_bits)
//   response_bound = 2^(31-response_bits)
//   log2_failure   = 1 - (2^23 - response_bound)^2 / (2 variance ln 2) + log2 W
TEST(NoiseBudget, IsTheFormula) {
  {
    // 2^14 * 1180000 * (2/3 + 21.5) = 428550826666.67; (2/3) * 1774 * 22369621.5 = 26455805694;
    // 6291456^2 / (2 * 455006632360.67) = 43.496529264, which is 62.752227066 ln 2.
    const NoiseBudget budget = noise_budget(1'180'000, 1774, 256, 28, 10, 18);
    EXPECT_NEAR(budget.query_variance, 1'285'652'480'000.0 / 3, 1);
    EXPECT_NEAR(budget.hint_variance, 26'455'805'694.0, 1);
    EXPECT_EQ(budget.response_bound, 2'097'152.0);
    EXPECT_NEAR(budget.log2_failure, 1 - 62.7522270656194 + 8, 1e-9);
  }
  {
    // Errors on -4..4, whose variance is 20/3: 2^14 * 1024 * (20/3 + 1365.5); (2/3) * 1288 *
    // 89478485.5 = 76832192882.67.
    const NoiseBudget budget = noise_budget(1024, 1288, 1, 25, 9, 17, 0, 4);
    EXPECT_NEAR(budget.query_variance, 69'063'409'664.0 / 3, 1);
    EXPECT_NEAR(budget.hint_variance, 230'496'578'648.0 / 3, 1);
    EXPECT_NEAR(budget.log2_failure, 1 - 127.08719733077731, 1e-9);
  }
  {
    // Nothing rounded: 2^14 * 4096 * 2/3, and the whole 2^23 is room.
    const NoiseBudget budget = noise_budget(4096, 1288, 1024, 32, 32, 32);
    EXPECT_NEAR(budget.query_variance, 134'217'728.0 / 3, 1e-6);
    EXPECT_EQ(budget.hint_variance, 0.0);
    EXPECT_EQ(budget.response_bound, 0.0);
    EXPECT_NEAR(budget.log2_failure, -1'134'570.54639638927, 1e-6);
  }
}

// docs/PARAMETERS.md, section 6: 1023 switches of 2048 coefficients, (2/3) (3 * 2^16 / 12 + 2^16 /
// 12) each, which is 1023 * 2^28 / 9, and near 2^34.8; and a tenth more. Computed as those above.
TEST(NoiseBudget, AddsWhatPackingAdds) {
  {
    // 2^14 * 8192 * (2/3 + 1365.5) = 183363786069.33; (2/3) * 2048 * 89478485.5 = 122167958869.33;
    // with 33563379848.53 of packing 7340032^2 / (2 * 339095124787.20) = 79.440938284, which is
    // 114.609047705 ln 2.
    const NoiseBudget budget = noise_budget(8192, 2048, 600, 25, 11, 17, packing_variance());
    EXPECT_NEAR(budget.query_variance, 550'091'358'208.0 / 3, 1);
    EXPECT_NEAR(budget.hint_variance, 366'503'876'608.0 / 3, 1);
    EXPECT_NEAR(budget.packing_variance, 1.1 * 274'609'471'488.0 / 9, 1);
    EXPECT_NEAR(budget.log2_failure, -104.38022901491536, 1e-9);
  }
  {
    // The most rows there may be, and nothing rounded.
    const NoiseBudget budget = noise_budget(1u << 24, 2048, 1, 32, 32, 32, packing_variance());
    EXPECT_EQ(budget.hint_variance, 0.0);
    EXPECT_NEAR(budget.log2_failure, -233.11777194428402, 1e-9);
  }
  EXPECT_EQ(noise_budget(8192, 2048, 600, 25, 11, 17).packing_variance, 0.0);
}

// Computed as those above, with v(bits) as there and K - 1 switches (docs/PARAMETERS.md, section
// 7):
//   query_variance = 4^(rb-1) G (2/3 + v(query_bits)), mask_variance = (2/3) 2048 v(mask_bits)
//   packing_variance = 1.1 (K - 1) 2^28 / 9, response_bound = 2^(31-response_bits)
//   log2_failure = 1 - (2^(31-rb) - response_bound)^2 / (2 variance ln 2) + log2 W
TEST(SecondNoise, IsTheFormula) {
  {
    // 2^18 * 2 * (2/3 + 1365.5), (2/3) * 2048 * 5592405.5 and all 1023 switches:
    // 1835008^2 / (2 * 41915142280.53) = 40.167516760, which is 57.949477234 ln 2.
    const SecondNoise noise = second_noise(2, 300, 10, 25, 19, 13, 1023);
    EXPECT_NEAR(noise.query_variance, 2'148'794'368.0 / 3, 1);
    EXPECT_NEAR(noise.mask_variance, 22'906'492'928.0 / 3, 1);
    EXPECT_NEAR(noise.packing_variance, 503'450'697'728.0 / 15, 1);
    EXPECT_EQ(noise.response_bound, 262'144.0);
    EXPECT_NEAR(noise.log2_failure, -48.72065854332278, 1e-9);
  }
  {
    // 2^16 * 50 * (2/3 + 5461.5), (2/3) * 2048 * 89478485.5 and 63 switches:
    // 3670016^2 / (2 * 142133339613.87) = 47.381625862, which is 68.357236661 ln 2.
    const SecondNoise noise = second_noise(50, 32, 9, 24, 17, 12, 63);
    EXPECT_NEAR(noise.query_variance, 53'695'283'200.0 / 3, 1);
    EXPECT_NEAR(noise.mask_variance, 366'503'876'608.0 / 3, 1);
    EXPECT_NEAR(noise.packing_variance, 10'334'765'056.0 / 5, 1);
    EXPECT_EQ(noise.response_bound, 524'288.0);
    EXPECT_NEAR(noise.log2_failure, -62.35723666063960, 1e-9);
  }
  {
    // Nothing rounded, and one switch: 2^16 * 16 * 2/3, and the whole 2^22 is room.
    const SecondNoise noise = second_noise(16, 1, 9, 32, 32, 32, 1);
    EXPECT_NEAR(noise.query_variance, 2'097'152.0 / 3, 1e-6);
    EXPECT_EQ(noise.mask_variance, 0.0);
    EXPECT_NEAR(noise.packing_variance, 1'476'395'008.0 / 45, 1e-3);
    EXPECT_EQ(noise.response_bound, 0.0);
    EXPECT_NEAR(noise.log2_failure, -378'718.84858850267, 1e-6);
  }
}

// 2^20 is less than six standard deviations of what 1023 switches add, and 2^21 more than eleven.
TEST(SecondNoise, AllowsTenBitsWithAllSwitches) {
  EXPECT_LT(second_noise(1, 1000, 10, 32, 32, 32, 1023).log2_failure, kFailureLog2Max);
  EXPECT_GT(second_noise(1, 1, 11, 32, 32, 32, 1023).log2_failure, kFailureLog2Max);
  EXPECT_LT(second_noise(1, 64, 12, 32, 32, 32, 63).log2_failure, kFailureLog2Max);
  EXPECT_GT(second_noise(1, 1, 13, 32, 32, 32, 63).log2_failure, kFailureLog2Max);
}

TEST(EitherLevel, FailsWithTheSumOfBoth) {
  EXPECT_DOUBLE_EQ(log2_of_either(-50, -50), -49.0);
  EXPECT_NEAR(log2_of_either(-60, -50), -49.99859180560719, 1e-12);  // log2(1 + 2^-10) more
  EXPECT_EQ(log2_of_either(-60, -50), log2_of_either(-50, -60));
  EXPECT_EQ(log2_of_either(-50, -1e6), -50.0);
  EXPECT_EQ(log2_of_either(0, -50), 0.0);
}

// What fewer bits than the papers' rest on: 1.18 million rows with 28-bit queries, 10-bit responses
// and 18-bit hints, for any record, and one bit fewer of either sum is too few.
TEST(NoiseBudget, AllowsTheRoundingsOfTheDesign) {
  EXPECT_LT(noise_budget(1'180'000, 1774, 131'092, 28, 10, 18).log2_failure, kFailureLog2Max);
  EXPECT_GT(noise_budget(1'180'000, 1774, 1024, 27, 10, 18).log2_failure, kFailureLog2Max);
  EXPECT_GT(noise_budget(1'180'000, 1774, 1024, 28, 9, 18).log2_failure, kFailureLog2Max);
}

TEST(NoiseBudget, LeavesNoRoomBelowNineResponseBits) {
  EXPECT_EQ(noise_budget(64, 1288, 1, 32, 8, 32).log2_failure, 0.0);
  EXPECT_EQ(noise_budget(64, 1288, 1, 32, 1, 32).log2_failure, 0.0);
  EXPECT_LT(noise_budget(64, 1288, 1, 32, 9, 32).log2_failure, -1000.0);
  EXPECT_EQ(noise_budget(uint64_t{1} << 31, 1774, 131'092, 24, 9, 16).log2_failure, 0.0);
}

}  // namespace
}  // namespace blindfuse
