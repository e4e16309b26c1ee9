#include "host/publish/recommendation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "host/server/serving/batch_scheduler.h"
#include "tests/publish/known_rates.h"

namespace blindfuse::recommending {
namespace {

using support::known_rates;
using ::testing::IsEmpty;

constexpr LayoutKind kHint{Mode::kHint, 1, false}, kOneLevel{Mode::kPacked, 1, false},
    kTwoLevels{Mode::kPacked, 2, false}, kShortKey{Mode::kPacked, 2, true};

PlanRequest keywords(uint64_t key_count, uint32_t value_bytes) {
  PlanRequest request;
  request.key_count = key_count;
  request.record = {8, 0, value_bytes};
  return request;
}

PlanRequest several_keys(uint32_t keys_per_request) {
  PlanRequest request = keywords(1 << 20, 1024);
  request.batch = BatchCode{keys_per_request, usual_bucket_count(keys_per_request)};
  return request;
}

Recommendation recommended(const PlanRequest& request, bool levels_fixed = false) {
  return recommend(request, levels_fixed, known_rates());
}

LayoutCost cost_of(const Plan& plan) { return layout_cost(plan, known_rates()); }

Plan plan_of(Mode mode, uint32_t levels = 1) {
  PlanRequest request = keywords(1 << 20, 256);
  request.mode = mode;
  request.levels = levels;
  return cheapest(plan_modes(request));
}

std::vector<LayoutKind> kinds_of(const std::vector<Plan>& plans) {
  std::vector<LayoutKind> kinds;
  for (const Plan& plan : plans) {
    const LayoutKind kind = kind_of(plan.layout);
    if (kinds.empty() || !(kinds.back() == kind)) kinds.push_back(kind);
  }
  return kinds;
}

// The only alternative that has this reason.
const Plan& with_reason(const Recommendation& found, const std::string& reason) {
  const auto has_reason = [&](const Alternative& each) {
    return std::ranges::any_of(each.reasons, [&](const std::string& text) {
      return text.find(reason) != std::string::npos;
    });
  };
  const auto at = std::ranges::find_if(found.alternatives, has_reason);
  if (at == found.alternatives.end()) {
    ADD_FAILURE() << "no alternative has " << reason;
    return found.best;
  }
  EXPECT_EQ(std::ranges::count_if(found.alternatives, has_reason), 1);
  return at->plan;
}

// What a layout costs with known rates: plan_report_test.cpp. Slow memory bounds a batch, whose
// queries share its reads, and leaves a query alone as it was; they share nothing of a second
// level.
TEST(LayoutCost, OfABatchIsBoundByMemoryAndHasAllOfASecondLevel) {
  Plan plan = plan_of(Mode::kPacked, 2);
  const LayoutCost two = cost_of(plan);
  plan.layout.second.reset();
  const LayoutCost one = cost_of(plan);
  EXPECT_GT(two.batch_seconds, one.batch_seconds);
  EXPECT_NEAR(two.batch_seconds - one.batch_seconds, two.alone_seconds - one.alone_seconds, 1e-12);
  CoreRates slow = known_rates();
  slow.memory_bytes_per_second = 1e6;
  const double read_bytes =
      static_cast<double>(plan.layout.matrix_bytes() + plan.layout.packing_table_bytes());
  EXPECT_GE(layout_cost(plan, slow).batch_seconds, read_bytes / 1e6 / 32);
  EXPECT_DOUBLE_EQ(layout_cost(plan, slow).alone_seconds, one.alone_seconds);
}

TEST(LayoutCost, HasTheServersBatches) { EXPECT_EQ(kFullBatch, BatchLimits{}.batch_max); }

TEST(Recommendation, HasAtMostThreeAlternativesWithReasons) {
  for (const uint64_t keys : {10ull, 1000ull, 100'000ull, 10'000'000ull}) {
    for (const uint64_t lookups : {1ull, 100ull, 100'000ull}) {
      PlanRequest request = keywords(keys, 100);
      request.lookups_per_client = lookups;
      const Recommendation found = recommended(request);
      std::vector<Layout> layouts = {found.best.layout};
      EXPECT_LE(found.alternatives.size(), 3u);
      for (const Alternative& each : found.alternatives) {
        EXPECT_FALSE(each.reasons.empty());
        EXPECT_EQ(std::ranges::count(layouts, each.plan.layout), 0);
        layouts.push_back(each.plan.layout);
        // Tables of more than two matrices are not worth it.
        EXPECT_LE(each.plan.layout.packing_table_bytes(),
                  std::max(kAutoPackingBytesMax, 2 * each.plan.layout.matrix_bytes()));
      }
    }
  }
}

// A million keys of 256 bytes: packed, in one level.
TEST(Recommendation, OffersSecrecyOfLweAndFewerBytes) {
  const Recommendation found = recommended(keywords(1'000'000, 256));
  ASSERT_EQ(kind_of(found.best.layout), kOneLevel);
  const Plan& lwe = with_reason(found, "secrecy rests on LWE alone");
  EXPECT_EQ(kind_of(lwe.layout), kHint);
  PlanRequest hint = keywords(1'000'000, 256);
  hint.mode = Mode::kHint;
  EXPECT_EQ(lwe.layout, cheapest(plan_modes(hint)).layout);
  // It is also the one that takes the least of the server.
  EXPECT_EQ(&with_reason(found, " times the look-ups a second"), &lwe);
  EXPECT_EQ(&with_reason(found, " % less server memory"), &lwe);
  const Plan& fewer = with_reason(found, " % fewer bytes for a client in an epoch");
  EXPECT_EQ(kind_of(fewer.layout).levels, 2u);
  EXPECT_LE(fewer.total_bytes, found.best.total_bytes * 9 / 10);
}

// Many look-ups make hints worth their bytes. The first one then takes 136 MB; fewer shards have
// smaller hints.
TEST(Recommendation, OffersAFirstLookUpOfFewerBytesAndLessMemory) {
  PlanRequest request = keywords(1'000'000, 256);
  request.lookups_per_client = 100'000;
  Recommendation found = recommended(request);
  ASSERT_EQ(found.best.layout.mode(), Mode::kHint);
  const Plan& first = with_reason(found, " times fewer bytes in a first look-up");
  EXPECT_LT(cost_of(first).first_bytes, cost_of(found.best).first_bytes / 10);
  EXPECT_LE(first.total_bytes, 2 * found.best.total_bytes);
  request.mode = Mode::kHint;
  found = recommended(request);
  const Plan& less = with_reason(found, " % less server memory");
  EXPECT_LE(cost_of(less).server_bytes, cost_of(found.best).server_bytes * 8 / 10);
  EXPECT_LE(less.total_bytes, 2 * found.best.total_bytes);
}

TEST(Recommendation, OfATinyDatabaseHasNoAlternatives) {
  EXPECT_THAT(recommended(keywords(100, 3)).alternatives, IsEmpty());
}

TEST(Recommendation, KeepsToWhatIsFixed) {
  PlanRequest request = keywords(3000, 8);
  EXPECT_EQ(kinds_of(recommended(request).plans),
            (std::vector{kHint, kOneLevel, kTwoLevels, kShortKey}));
  EXPECT_EQ(kinds_of(recommended(request, true).plans), (std::vector{kHint, kOneLevel}));
  request.mode = Mode::kHint;
  EXPECT_EQ(kinds_of(recommended(request).plans), std::vector{kHint});
  request.mode.reset();
  request.lwe = find_lwe_params("lwe-1288");
  EXPECT_EQ(kinds_of(recommended(request).plans), std::vector{kHint});
  request.lwe = nullptr;
  request.mode = Mode::kPacked;
  request.levels = 2;
  EXPECT_EQ(kinds_of(recommended(request, true).plans), (std::vector{kTwoLevels, kShortKey}));
  request.short_key = true;
  EXPECT_EQ(kinds_of(recommended(request, true).plans), std::vector{kShortKey});
  request = keywords(1'000'000, 256);
  request.shard_count = 64;
  for (const Plan& plan : recommended(request).plans) EXPECT_EQ(plan.layout.shard_count, 64u);
}

// One key a request has 32 shards: 157,696 bytes up, 41,280 down (planner_test.cpp). 4,206,336
// bytes, as 384 shards have for 64 keys, are those of 21.1 look-ups.
TEST(Recommendation, OfSeveralKeysOffersOneKey) {
  PlanRequest request = several_keys(64);
  request.shard_count = 384;
  request.query_bits = 25;
  const Recommendation found = recommended(request);
  EXPECT_EQ(found.keys_that_pay, 22u);
  const Plan& one = with_reason(found, "where clients ask for fewer than 22 keys at a time");
  EXPECT_EQ(one.layout.batch, std::nullopt);
  EXPECT_EQ(one.layout.shard_count, 32u);
  EXPECT_EQ(request_bytes(one.layout), 198'976u);
  Layout fewer = found.best.layout;
  fewer.batch->keys_per_request = 22;
  EXPECT_EQ(keys_that_pay(fewer, one.layout), 22u);
  fewer.batch->keys_per_request = 21;
  EXPECT_EQ(keys_that_pay(fewer, one.layout), std::nullopt);
}

}  // namespace
}  // namespace blindfuse::recommending
