#include "host/publish/plan_chooser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "host/publish/plan_comparison.h"
#include "tests/publish/known_rates.h"

namespace blindfuse {
namespace {

using support::known_rates;
using ::testing::Each;

using Kinds = std::vector<std::vector<Plan>>;

// In hint mode, records of 1000 bytes in 8 million rows: each shard takes 0.1 s of a query's time
// at 80 * 10^9 multiply-adds a second.
Plan plan_with(uint32_t shard_count, uint64_t total_bytes) {
  Plan plan;
  plan.layout.key_count = 1;
  plan.layout.shard_count = shard_count;
  plan.layout.row_count = 8'000'000;
  plan.layout.record = {8, 0, 992};
  plan.layout.lwe = find_lwe_params("lwe-1774");
  plan.total_bytes = total_bytes;
  return plan;
}

// 0.4 s, 0.2 s and 0.1 s.
const Kinds kOneKind = {
    {plan_with(4, 1'000'000), plan_with(2, 1'900'000), plan_with(1, 2'100'000)}};
// The same in two kinds.
const Kinds kTwoKinds = {{plan_with(4, 1'000'000)},
                         {plan_with(2, 1'900'000), plan_with(1, 2'100'000)}};

uint32_t shards_of_best(const Kinds& kinds, Preference preference, uint64_t lookups) {
  return PlanChooser(kinds, {preference, known_rates()}, lookups).best().layout.shard_count;
}

TEST(PlanChooser, PrefersTheFewestBytes) {
  for (const Kinds& kinds : {kOneKind, kTwoKinds}) {
    EXPECT_EQ(shards_of_best(kinds, Preference::kBytes, 100), 4u);
    EXPECT_EQ(PlanChooser(kinds, {}, 100).best().layout.shard_count, 4u);
  }
}

// In the packed mode with records of 1000 bytes, 4 shards are 4 packs, and 2 shards 2.
TEST(PlanChooser, TakesFewerPacksForSomeBytesUnlessBytesArePreferred) {
  Kinds kinds = kOneKind;
  for (Plan& plan : kinds[0]) plan.layout.lwe = find_lwe_params("ring-2048");
  kinds[0][1].total_bytes = 1'100'000;
  EXPECT_EQ(PlanChooser(kinds, {}, 100).best().layout.shard_count, 2u);
  EXPECT_EQ(shards_of_best(kinds, Preference::kBytes, 100), 4u);
}

// The third takes more than twice the fewest bytes.
TEST(PlanChooser, PrefersTheLeastTimeOfThoseWithFewBytes) {
  for (const Kinds& kinds : {kOneKind, kTwoKinds}) {
    EXPECT_EQ(shards_of_best(kinds, Preference::kSpeed, 100), 2u);
  }
  Kinds kinds = kOneKind;
  kinds[0][2].total_bytes = 2'000'000;
  EXPECT_EQ(shards_of_best(kinds, Preference::kSpeed, 100), 1u);
}

// 100 look-ups: 0.000090 + 0.000444 dollars, 0.000171 + 0.000222, 0.000189 + 0.000111. With 10 they
// are 0.000134, 0.000193 and 0.000200.
TEST(PlanChooser, PrefersTheLeastMoney) {
  for (const Kinds& kinds : {kOneKind, kTwoKinds}) {
    EXPECT_EQ(shards_of_best(kinds, Preference::kBalanced, 100), 1u);
    EXPECT_EQ(shards_of_best(kinds, Preference::kBalanced, 10), 4u);
  }
}

TEST(PlanChooser, TakesTheFewestBytesOfEqualTimes) {
  const Kinds kinds = {{plan_with(2, 1'500'000), plan_with(2, 1'400'000), plan_with(2, 1'400'000)}};
  const PlanChooser chooser(kinds, {Preference::kSpeed, known_rates()}, 100);
  EXPECT_EQ(&chooser.best(), &kinds[0][1]);
}

// The best of a kind that no preference for speed allows is the one with the fewest bytes.
TEST(PlanChooser, KnowsTheBestOfAKind) {
  const PlanChooser chooser(kTwoKinds, {Preference::kSpeed, known_rates()}, 100);
  EXPECT_EQ(chooser.best_of(kTwoKinds[1]).layout.shard_count, 2u);
  const std::vector<Plan> large = {plan_with(1, 4'000'000), plan_with(2, 3'000'000)};
  EXPECT_EQ(&chooser.best_of(large), &large[1]);
}

PlanRequest small_keywords() {
  PlanRequest request;
  request.key_count = 3000;
  request.record = {8, 0, 8};
  request.levels_open = true;
  return request;
}

using Kind = LayoutKind;
const Kind kHint{Mode::kHint, 1, false}, kOneLevel{Mode::kPacked, 1, false},
    kTwoLevels{Mode::kPacked, 2, false}, kShortKey{Mode::kPacked, 2, true};

// All plans of a list are of one kind.
std::vector<Kind> kinds_of(const Kinds& kinds) {
  std::vector<Kind> found;
  for (const std::vector<Plan>& plans : kinds) {
    found.push_back(kind_of(plans.at(0).layout));
    for (const Plan& plan : plans) EXPECT_EQ(kind_of(plan.layout), found.back());
  }
  return found;
}

TEST(PlanKinds, AreAllThatAreOpen) {
  PlanRequest request = small_keywords();
  EXPECT_EQ(kinds_of(plan_kinds(request)), (std::vector{kHint, kOneLevel, kTwoLevels, kShortKey}));
  request.mode = Mode::kPacked;
  EXPECT_EQ(kinds_of(plan_kinds(request)), (std::vector{kOneLevel, kTwoLevels, kShortKey}));
  request.mode = Mode::kHint;
  EXPECT_EQ(kinds_of(plan_kinds(request)), std::vector{kHint});
  request.mode.reset();
  request.lwe = find_lwe_params("lwe-1288");
  EXPECT_EQ(kinds_of(plan_kinds(request)), std::vector{kHint});
}

TEST(PlanKinds, HaveOneLevelUnlessLevelsAreOpen) {
  PlanRequest request = small_keywords();
  request.levels_open = false;
  EXPECT_EQ(kinds_of(plan_kinds(request)), (std::vector{kHint, kOneLevel}));
  request.mode = Mode::kPacked;
  request.levels = 2;
  EXPECT_EQ(kinds_of(plan_kinds(request)), std::vector{kTwoLevels});
}

TEST(PlanKinds, HaveNoShortKeyForLongRecords) {
  PlanRequest request = small_keywords();
  request.record.value_bytes = 505;
  EXPECT_EQ(kinds_of(plan_kinds(request)), (std::vector{kHint, kOneLevel, kTwoLevels}));
}

// 100 keys of 100 kB have 98 packs, 2.5 GB.
TEST(PlanKinds, LeaveLargeTablesOutUnlessAsked) {
  PlanRequest request = small_keywords();
  request.key_count = 100;
  request.record.value_bytes = 100'000;
  EXPECT_EQ(kinds_of(plan_kinds(request)), std::vector{kHint});
  request.mode = Mode::kPacked;
  EXPECT_EQ(kinds_of(plan_kinds(request)).front(), kOneLevel);
}

TEST(PlanComparison, HasTheChosenPlanAndTheBestOfEachKind) {
  const PlanRequest request = small_keywords();
  const Kinds kinds = plan_kinds(request);
  for (const Preference preference :
       {Preference::kBytes, Preference::kSpeed, Preference::kBalanced}) {
    const PlanChooser chooser(kinds, {preference, known_rates()}, 100);
    const std::vector<Plan> compared =
        plans_worth_comparing(request, true, chooser, chooser.best());
    EXPECT_EQ(compared.at(0).layout, chooser.best().layout);
    // Tables are small here, so that each kind is there once.
    EXPECT_EQ(compared.size(), 4u);
    for (const std::vector<Plan>& plans : kinds) {
      EXPECT_NE(std::ranges::find(compared, chooser.best_of(plans).layout, &Plan::layout),
                compared.end());
    }
  }
}

TEST(PlanComparison, KeepsToWhatIsFixed) {
  PlanRequest request = small_keywords();
  const auto compared_kinds = [&](bool with_two_levels) {
    const Kinds kinds = plan_kinds(request);
    const PlanChooser chooser(kinds, {}, 100);
    std::vector<Kind> found;
    for (const Plan& plan :
         plans_worth_comparing(request, with_two_levels, chooser, chooser.best())) {
      found.push_back(kind_of(plan.layout));
    }
    return found;
  };
  request.levels_open = false;
  EXPECT_EQ(compared_kinds(false), (std::vector{kHint, kOneLevel}));
  request.mode = Mode::kHint;
  EXPECT_THAT(compared_kinds(true), Each(kHint));
  request.mode = Mode::kPacked;
  request.levels = 2;
  EXPECT_EQ(compared_kinds(false), (std::vector{kTwoLevels, kShortKey}));
  request.short_key = true;
  EXPECT_EQ(compared_kinds(false), std::vector{kShortKey});
}

// 2^20 keys of 1 KB: tables beyond twice the matrix, and beyond 256 MiB, are not worth it.
TEST(PlanComparison, HasTablesOfAtMostTwiceTheMatrix) {
  PlanRequest request = small_keywords();
  request.key_count = 1 << 20;
  request.record.value_bytes = 1024;
  const Kinds kinds = plan_kinds(request);
  const PlanChooser chooser(kinds, {}, 100);
  const std::vector<Plan> compared = plans_worth_comparing(request, true, chooser, chooser.best());
  size_t large = 0;
  for (const Plan& plan : compared) {
    const uint64_t tables = plan.layout.packing_table_bytes();
    EXPECT_LE(tables, 2 * plan.layout.matrix_bytes());
    if (tables > plan.layout.matrix_bytes()) ++large;
  }
  EXPECT_GT(large, 0u);
}

}  // namespace
}  // namespace blindfuse
