#include "host/publish/plan_cost.h"

#include <gtest/gtest.h>

#include "host/server/serving/batch_scheduler.h"
#include "tests/publish/known_rates.h"

namespace blindfuse {
namespace {

using support::known_rates;

constexpr double kSame = 1e-12;  // seconds and dollars; sums of doubles

// The layout that the planner's tests reckon: 40,960 rows of 33,024 columns, 33 packs, masks of 17
// bits.
Plan packed_plan() {
  Plan plan;
  Layout& layout = plan.layout;
  layout.key_count = 1 << 20;
  layout.shard_count = 32;
  layout.row_count = 40'960;
  layout.segment_length = 1024;
  layout.record = {8, 0, 1024};
  layout.lwe = find_lwe_params("ring-2048");
  layout.query_bits = 26;
  layout.response_bits = 10;
  layout.hint_bits = 17;
  plan.total_bytes = 20'046'912;
  return plan;
}

double second_seconds_of(uint32_t shard_count, uint32_t record_bytes, SecondLevel second) {
  Plan plan = packed_plan();
  plan.layout.shard_count = shard_count;
  plan.layout.record = {8, 0, record_bytes - 8};
  const double without = plan_cost(plan, known_rates(), 1).batch_seconds;
  const double alone = plan_cost(plan, known_rates(), 1).alone_seconds;
  plan.layout.second = second;
  const double more = plan_cost(plan, known_rates(), 1).batch_seconds - without;
  EXPECT_NEAR(plan_cost(plan, known_rates(), 1).alone_seconds - alone, more, kSame);
  return more;
}

// Matrix: 40,960 * 33,024 = 1,352,663,040 bytes. Tables: 33 * 25,141,248 = 829,661,184 bytes, which
// are 207,415,296 digits.
TEST(PlanCost, OfPackedResponses) {
  const PlanCost cost = plan_cost(packed_plan(), known_rates(), 100);
  EXPECT_NEAR(cost.alone_seconds, 0.135'266'304 + 0.103'707'648, kSame);
  EXPECT_NEAR(cost.batch_seconds, 0.016'908'288 + 0.051'853'824, kSame);
  EXPECT_NEAR(cost.lookups_per_core_second(), 14.542'892'458, 1e-6);
  EXPECT_EQ(cost.server_bytes, 1'352'663'040u + 829'661'184u + 143'616u);
  // 0.020046912 GB at 0.09, and 6.8762112 seconds at 0.0425 / 3600.
  EXPECT_NEAR(cost.dollars, 0.001'804'222'08 + 0.000'081'177'493'333'3, kSame);
}

// 1774 words of 17 bits for each column.
TEST(PlanCost, OfTheHintMode) {
  Plan plan = packed_plan();
  plan.layout.lwe = find_lwe_params("lwe-1774");
  const PlanCost cost = plan_cost(plan, known_rates(), 100);
  EXPECT_NEAR(cost.alone_seconds, 0.135'266'304, kSame);
  EXPECT_NEAR(cost.batch_seconds, 0.016'908'288, kSame);
  EXPECT_EQ(cost.server_bytes, 1'352'663'040u + 32u * (1774u * 1032u * 17u / 8u));
}

// At 100 MB a second, a batch of 32 takes what reading takes: each query a 32nd of it.
TEST(PlanCost, IsAtLeastTheReadsOfMemory) {
  CoreRates rates = known_rates();
  rates.memory_bytes_per_second = 100e6;
  const PlanCost cost = plan_cost(packed_plan(), rates, 100);
  EXPECT_NEAR(cost.batch_seconds, 0.422'707'2 + 0.259'269'12, kSame);
  EXPECT_NEAR(cost.alone_seconds, 0.135'266'304 + 0.103'707'648, kSame);
}

// 1023 switches, the polynomials of one pack, and 900 columns of one block of rows.
TEST(PlanCost, OfASecondLevel) {
  EXPECT_NEAR(second_seconds_of(40, 300, {3, 22, 17, 12, 0}), 0.020'46 + 0.005 + 0.002'7, kSame);
}

// 63 switches, 64 * 6 steps of the small transform, and 60 columns.
TEST(PlanCost, OfAShortKey) {
  EXPECT_NEAR(second_seconds_of(40, 20, {3, 22, 17, 12, 64}), 0.001'26 + 0.000'384 + 0.000'18,
              kSame);
}

// Three packs, and 5000 rows in three blocks.
TEST(PlanCost, OfASecondLevelOfLongRecords) {
  EXPECT_NEAR(second_seconds_of(5000, 3000, {1, 22, 17, 12, 0}),
              3 * (0.020'46 + 0.005) + 3000 * 3 * 3e-6, 1e-9);
}

TEST(PlanCost, HasTheServersBatches) { EXPECT_EQ(kFullBatch, BatchLimits{}.batch_max); }

}  // namespace
}  // namespace blindfuse
