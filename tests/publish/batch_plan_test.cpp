// Plans for requests of several keys. The numbers of the first layout are reckoned by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "host/publish/planner.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using support::input_error_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint64_t kTableBytesByHand = 25'141'248;  // 1023 switches, 3 digits, 2048 points, 4 bytes

PlanRequest several_keys(uint64_t key_count, uint32_t value_bytes, uint32_t keys_per_request) {
  PlanRequest request;
  request.key_count = key_count;
  request.record = {8, 0, value_bytes};
  request.mode = Mode::kPacked;
  request.lwe = find_lwe_params("ring-2048");
  request.batch = BatchCode{keys_per_request, usual_bucket_count(keys_per_request)};
  return request;
}

Plan plan_in(PlanRequest request, uint32_t shard_count) {
  request.shard_count = shard_count;
  return plan_layouts(request).at(0);
}

// 2^20 keys with 1024 bytes, 64 a request, in 96 buckets of 4 shards. The fullest of 384 shards is
// taken to have 3 * 2^20 / 384 + sqrt(2 * 8192 * ln 384) + ln 384 / 3 = 8507 records, for which a
// filter has 21 segments of 512 rows: 6 blocks of 2048. Query: 96 * 12,288 * 25 / 8 and 24 KiB of
// key. Response: 384 * 1032 columns, 10 bits each. Masks: 387 packs, 2048 words of 17 bits each.
// Table: 112 bytes a shard and 64 a pack. 100 look-ups are two requests.
TEST(BatchPlan, OfSixtyFourKeys) {
  const Plan plan = plan_in(several_keys(1 << 20, 1024, 64), 384);
  const Layout& layout = plan.layout;
  EXPECT_EQ(layout.batch, (BatchCode{64, 96}));
  EXPECT_EQ(layout.key_count, 1u << 20);
  EXPECT_EQ(layout.record_count(), 3u << 20);
  EXPECT_EQ(layout.bucket_shard_count(), 4u);
  EXPECT_EQ(layout.segment_length, 512u);
  EXPECT_EQ(layout.row_count, 12'288u);
  EXPECT_EQ(layout.query_bits, 25u);
  EXPECT_EQ(layout.response_bits, 10u);
  EXPECT_EQ(layout.hint_bits, 17u);
  EXPECT_EQ(layout.query_bytes(), 3'686'400u + 24'576u);
  EXPECT_EQ(layout.response_bytes(), 495'360u);
  EXPECT_EQ(request_bytes(layout), 4'206'336u);
  EXPECT_EQ(layout.hint_bytes(), 387u * 4352u);
  EXPECT_EQ(plan.sync_bytes, 1'684'224u + 112 * 384 + 64 * 387);
  EXPECT_EQ(plan.total_bytes, 1'752'000u + 2 * 4'206'336u);
  EXPECT_EQ(layout.matrix_bytes(), 12'288u * 396'288ull);
  EXPECT_EQ(layout.packing_table_bytes(), 387 * kTableBytesByHand);
  EXPECT_EQ(input_error_of([&] { check_layout(layout); }), "");
  EXPECT_EQ(request_count(layout, 1), 1u);
  EXPECT_EQ(request_count(layout, 64), 1u);
  EXPECT_EQ(request_count(layout, 65), 2u);
}

// In tables of at most two matrices: 24.6 kB of them a column, and so at least 12,288 rows.
TEST(BatchPlan, ChoosesTheFewestBytesWithTablesOfTwoMatrices) {
  for (const auto& [keys, shards] : {std::pair(16u, 352u), std::pair(64u, 384u)}) {
    const auto kinds = plan_modes(several_keys(1 << 20, 1024, keys));
    ASSERT_EQ(kinds.size(), 1u);
    const Plan& best = cheapest(kinds);
    EXPECT_EQ(best.layout.shard_count, shards);
    EXPECT_EQ(best.layout.row_count, 12'288u);
    for (const Plan& plan : kinds[0]) {
      if (plan.layout.packing_table_bytes() > 2 * plan.layout.matrix_bytes()) continue;
      EXPECT_GE(plan.total_bytes, best.total_bytes);
    }
  }
  // 3000 keys with 1016 bytes have 2048 rows in a bucket however many shards it has: 96 packs at
  // least, which take twelve matrices. The fewest packs then; and a key of its own has a layout.
  const auto few = plan_modes(several_keys(3000, 1016, 64));
  EXPECT_EQ(cheapest(few).layout.shard_count, 96u);
  EXPECT_EQ(cheapest(few).layout.pack_count(), 96u);
  EXPECT_EQ(plan_modes(several_keys(1, 8, 2)).at(0).at(0).layout.shard_count, 12u);
}

TEST(BatchPlan, OffersAFewPerCentMoreShardsEachTime) {
  std::vector<uint32_t> counts, expected;
  for (const Plan& plan : plan_layouts(several_keys(1 << 20, 1024, 64))) {
    counts.push_back(plan.layout.shard_count);
  }
  for (uint32_t i = 1; i <= 16; ++i) expected.push_back(96 * i);
  for (const uint32_t i : {18, 20, 22, 24, 26, 28, 30, 32, 36}) expected.push_back(96 * i);
  ASSERT_GE(counts.size(), expected.size());
  EXPECT_TRUE(std::ranges::equal(expected, std::span(counts).first(expected.size())));
  EXPECT_LE(counts.back(), kShardCountMax);
}

TEST(BatchPlan, RefusesShardsThatAreNotTheSameInEveryBucket) {
  const PlanRequest request = several_keys(1 << 20, 1024, 64);
  EXPECT_EQ(input_error_of([&] { plan_in(request, 100); }),
            "--shards 100 is not a multiple of the 96 buckets of requests for 64 keys; take 96 or "
            "192, or leave --shards out");
  EXPECT_EQ(input_error_of([&] { plan_in(request, 32); }),
            "--shards 32 is not a multiple of the 96 buckets of requests for 64 keys; take 96, or "
            "leave --shards out");
}

// 2^32 keys have 200,000 records and more in each of 65,536 shards: 3 * 10^8 words in 1536 buckets.
TEST(BatchPlan, RefusesQueriesOfTooManyWords) {
  EXPECT_THAT(input_error_of([] { plan_modes(several_keys(kKeyCountMax, 8, 1024)); }),
              AllOf(HasSubstr("one for each row of 1536 buckets"), HasSubstr("at most 2^26"),
                    HasSubstr("fewer --keys-per-request")));
}

TEST(BatchPlan, IsForPackedResponsesOfOneLevelAndKeywords) {
  PlanRequest open = several_keys(3000, 8, 16);
  open.lwe = nullptr;
  open.mode.reset();
  ASSERT_EQ(plan_modes(open).size(), 1u);
  EXPECT_EQ(plan_modes(open)[0][0].layout.mode(), Mode::kPacked);
  PlanRequest wrong[4] = {open, open, open, open};
  wrong[0].mode = Mode::kHint;
  wrong[1].lwe = find_lwe_params("lwe-1774");
  wrong[2].levels = 2;
  wrong[3].kind = DatabaseKind::kIndex;
  for (const PlanRequest& request : wrong) {
    EXPECT_THAT(input_error_of([&] { plan_modes(request); }),
                HasSubstr("packed responses of one level"));
  }
}

}  // namespace
}  // namespace blindfuse
