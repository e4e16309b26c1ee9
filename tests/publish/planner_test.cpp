#include "host/publish/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "host/publish/shard_plan.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using support::input_error_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

PlanRequest keywords(uint64_t key_count, uint32_t value_bytes) {
  PlanRequest request;
  request.key_count = key_count;
  request.record = {8, 0, value_bytes};
  return request;
}

PlanRequest numbered(uint64_t key_count, uint32_t value_bytes) {
  PlanRequest request = keywords(key_count, value_bytes);
  request.kind = DatabaseKind::kIndex;
  request.record.digest_bytes = 0;
  return request;
}

PlanRequest in_mode(PlanRequest request, Mode mode) {
  request.mode = mode;
  return request;
}

PlanRequest with_set(PlanRequest request, const char* name) {
  request.lwe = find_lwe_params(name);
  return request;
}

PlanRequest with_shards(PlanRequest request, uint32_t shard_count) {
  request.shard_count = shard_count;
  return request;
}

// The sets of the plans of each mode; all plans of a mode have the same.
std::vector<std::string> sets_of(const std::vector<std::vector<Plan>>& modes) {
  std::vector<std::string> sets;
  for (const std::vector<Plan>& plans : modes) {
    EXPECT_FALSE(plans.empty());
    for (const Plan& plan : plans) EXPECT_EQ(plan.layout.lwe, plans.front().layout.lwe);
    sets.emplace_back(plans.front().layout.lwe->name);
  }
  return sets;
}

const Plan* at_shards(const std::vector<Plan>& plans, uint32_t shard_count) {
  for (const Plan& plan : plans) {
    if (plan.layout.shard_count == shard_count) return &plan;
  }
  return nullptr;
}

using Sets = std::vector<std::string>;

TEST(PlanModes, OffersEachModeThatIsOpenAndTakesASetForItsMode) {
  const PlanRequest request = keywords(3000, 8);
  EXPECT_EQ(sets_of(plan_modes(request)), (Sets{"lwe-1774", "ring-2048"}));
  EXPECT_EQ(sets_of(plan_modes(in_mode(request, Mode::kHint))), Sets{"lwe-1774"});
  EXPECT_EQ(sets_of(plan_modes(in_mode(request, Mode::kPacked))), Sets{"ring-2048"});
  EXPECT_EQ(sets_of(plan_modes(with_set(request, "lwe-1288"))), Sets{"lwe-1288"});
  EXPECT_EQ(sets_of(plan_modes(with_set(request, "ring-2048"))), Sets{"ring-2048"});
  EXPECT_EQ(sets_of(plan_modes(in_mode(with_set(request, "lwe-1572"), Mode::kHint))),
            Sets{"lwe-1572"});
}

// 2^20 keys with 1024 bytes in 32 shards. The fullest is taken to have 32,768 + sqrt(2 * 32,768 *
// ln 32) + ln 32 / 3 = 33,246 keys, for which a filter has 40 segments of 1024 rows. Query: 40,960
// * 26 / 8 and 24 KiB of key. Response: C = 32 * 1032 columns, 10 bits each. Masks: 33 packs, 2048
// words of 17 bits each. Table: 112 bytes a shard and 64 a pack. The bound is 1 + log2 W - T^2 / (2
// sigma^2 ln 2) of docs/PARAMETERS.md, sections 3 and 6.
TEST(Planner, KnowsWhatPackedResponsesCost) {
  PlanRequest request = with_set(keywords(1 << 20, 1024), "ring-2048");
  request.shard_count = 32;
  const Plan plan = plan_layouts(request).at(0);
  const Layout& layout = plan.layout;
  EXPECT_EQ(layout.row_count, 40'960u);
  EXPECT_EQ(layout.segment_length, 1024u);
  EXPECT_EQ(layout.query_bits, 26u);
  EXPECT_EQ(layout.response_bits, 10u);
  EXPECT_EQ(layout.hint_bits, 17u);
  EXPECT_EQ(layout.query_bytes(), 133'120u + 24'576u);
  EXPECT_EQ(layout.response_bytes(), 41'280u);
  EXPECT_EQ(layout.hint_bytes(), 143'616u);
  EXPECT_EQ(plan.sync_bytes, 143'616u + 112 * 32 + 64 * 33);
  EXPECT_EQ(plan.total_bytes, 149'312u + 100 * (157'696u + 41'280u));
  EXPECT_LE(layout.query_bytes() + layout.response_bytes(), 200'000u);
  EXPECT_LE(plan.sync_bytes, 150'000u);
  EXPECT_NEAR(layout.noise().log2_failure, -63.08, 0.01);
  // Each pack's: 1023 switches of three digits at 2048 points, four bytes each.
  EXPECT_EQ(layout.packing_table_bytes(), 33u * 25'141'248u);
  EXPECT_EQ(layout.matrix_bytes(), 40'960u * 33'024ull);
}

PlanRequest with_two_levels(PlanRequest request, bool short_key) {
  request = with_set(request, "ring-2048");
  request.levels = 2;
  request.short_key = short_key;
  return request;
}

// 480,000 records of 300 bytes in 40 shards of 12,000, which have 12,288 rows. Groups have one
// shard, G = 40: with g = 3, as in docs/PARAMETERS.md, section 7, a response is longer by 975
// bytes and a query shorter by 84. A query has 12,288 * 25 / 8 = 38,400 bytes of words, 24,576 of
// key and 40 * 26 / 8 = 130 of numbers. A response has a mask of 256 * 19 = 4,864 bytes and 300 *
// 13 / 8 = 487.5 of words. Masks of all 12 packs: 256 * 17 bytes each. Table: 112 bytes a shard and
// 64 a pack. The bounds follow from the formulas of sections 6 and 7.
TEST(Planner, KnowsWhatTwoLevelsCost) {
  const PlanRequest request = with_two_levels(with_shards(numbered(480'000, 300), 40), false);
  const Plan plan = plan_layouts(request).at(0);
  const Layout& layout = plan.layout;
  EXPECT_EQ(layout.row_count, 12'288u);
  EXPECT_EQ(layout.query_bits, 25u);
  EXPECT_EQ(layout.response_bits, 10u);
  EXPECT_EQ(layout.hint_bits, 17u);
  EXPECT_EQ(layout.second, (SecondLevel{1, 26, 19, 13, 0}));
  EXPECT_EQ(layout.query_bytes(), 38'400u + 24'576 + 130);
  EXPECT_EQ(layout.response_bytes(), 4'864u + 488);
  EXPECT_EQ(layout.hint_bytes(), 12u * 4'352);
  EXPECT_EQ(plan.sync_bytes, 52'224u + 112 * 40 + 64 * 12);
  EXPECT_EQ(plan.total_bytes, 57'472u + 100 * (63'106u + 5'352u));
  EXPECT_NEAR(layout.noise().log2_failure, -57.053, 0.001);
  EXPECT_NEAR(layout.log2_failure(), -45.005, 0.001);  // with 2^-45.005 of the second level
}

// The same with records of 20 bytes and a short key. Groups have two shards, 40 columns: a key of
// order 64, and G = 20. A query has 38,400 bytes of words, two keys and 20 * 26 / 8 = 65 bytes of
// numbers. A response has a mask of 256 * 18 = 4,608 bytes and 40 * 12 / 8 = 60 of words. One pack
// has all 800 columns.
TEST(Planner, KnowsWhatAShortKeyCosts) {
  const PlanRequest request = with_two_levels(with_shards(numbered(480'000, 20), 40), true);
  const Plan plan = plan_layouts(request).at(0);
  const Layout& layout = plan.layout;
  EXPECT_EQ(layout.row_count, 12'288u);
  EXPECT_EQ(layout.second, (SecondLevel{2, 26, 18, 12, 64}));
  EXPECT_EQ(layout.query_bytes(), 38'400u + 2 * 24'576 + 65);
  EXPECT_EQ(layout.response_bytes(), 4'608u + 60);
  EXPECT_EQ(plan.sync_bytes, 4'352u + 112 * 40 + 64);
  EXPECT_EQ(plan.total_bytes, 8'896u + 100 * (87'617u + 4'668u));
  EXPECT_NEAR(layout.log2_failure(), -46.550, 0.001);
}

TEST(Planner, SaysWhyNoLayoutHasTwoLevels) {
  const auto message_of = [](const PlanRequest& request) {
    return input_error_of([&] { plan_layouts(request); });
  };
  // A short key packs 512 columns.
  EXPECT_EQ(message_of(with_two_levels(numbered(1'000, 512), true)), "");
  EXPECT_EQ(message_of(with_two_levels(numbered(1'000, 513), true)),
            "records of 513 bytes are too long for a short key, which packs at most 512 columns; "
            "leave --short-key out, or --levels");

  // At 1023 switches there are at most 10 bits, with 64 columns and a short key 12: docs/
  // PARAMETERS.md, section 7.
  PlanRequest bits = with_two_levels(with_shards(numbered(1'000, 8), 1), false);
  bits.response_bits = 10;
  EXPECT_EQ(message_of(bits), "");
  bits.response_bits = 11;
  EXPECT_EQ(message_of(bits),
            "the second level cannot find words of 11 response_bits exactly in groups of any size; "
            "use fewer --response-bits, or add --short-key, or leave --levels out");
  bits.short_key = true;
  EXPECT_EQ(message_of(bits), "");
  PlanRequest wide = with_two_levels(with_shards(numbered(1'000, 512), 1), true);
  wide.response_bits = 13;
  EXPECT_EQ(message_of(wide),
            "the second level cannot find words of 13 response_bits exactly in groups of any size; "
            "use fewer --response-bits, or leave --levels out");
  bits.response_bits = 14;
  EXPECT_EQ(message_of(bits),
            "response_bits is 14; with two levels it is at most 13, so that the second level finds "
            "the words exactly; leave --response-bits out, or take fewer");

  // With 24 query bits, the first level's bound with 8,192 rows is 2^-33.2 at 10 bits and 2^-46.7
  // at 11. With 12,288 rows it is 2^-38.04 at 13 bits.
  PlanRequest rows = with_two_levels(with_shards(numbered(8'192, 8), 1), false);
  rows.query_bits = 24;
  EXPECT_EQ(message_of(rows),
            "the second level cannot find words of 11 response_bits exactly in groups of any size; "
            "use more query bits, hint bits or shards, so that fewer do, or add --short-key, or "
            "leave --levels out");
  rows.key_count = 12'288;
  EXPECT_EQ(message_of(rows),
            "the first of two levels would fail with probability up to 2^-38.0; at most 2^-41 is "
            "allowed (12288 rows, query_bits 24, response_bits 13, hint_bits 32); use more bits or "
            "more shards, or leave --levels out");
  rows.shard_count.reset();
  EXPECT_EQ(message_of(rows), "") << "more shards";
}

// A client of few look-ups spares itself the hint; one of many has sent too many packing keys.
TEST(PlanModes, TheFewestBytesInAllAreChosen) {
  PlanRequest request = keywords(1 << 20, 1024);
  const auto modes = plan_modes(request);
  const Plan& best = cheapest(modes);
  EXPECT_EQ(best.layout.mode(), Mode::kPacked);
  EXPECT_EQ(best.layout.shard_count, 32u);
  EXPECT_EQ(best.total_bytes, 20'046'912u);
  const Plan& hint = cheapest(modes.at(0));
  EXPECT_EQ(hint.layout.packing_table_bytes(), 0u);
  EXPECT_EQ(hint.layout.shard_count, 12u);
  EXPECT_EQ(hint.sync_bytes, 12u * (112 + 1774u * 1032 * 16 / 8));
  EXPECT_EQ(hint.total_bytes, hint.sync_bytes + 100 * (104'448u * 27 / 8 + 12'384u * 11 / 8));
  request.lookups_per_client = 10'000;
  EXPECT_EQ(cheapest(plan_modes(request)).layout.mode(), Mode::kHint);
  // A small database has a small hint.
  const auto small = plan_modes(keywords(3000, 8));
  EXPECT_EQ(&cheapest(small), &cheapest(small.at(0)));
}

// 48 shards take fewest bytes of those that are offered, 17,583,104, and 49 packs; 32 shards 14.0 %
// more and 33 packs; 24 shards more than 15 % more. At 64 shards 65 packing tables take 1.63 GB,
// and the matrix of 22,528 rows 1.49 GB: they are for those who ask.
TEST(Planner, GivesSomeBytesForFewerPacks) {
  const std::vector<Plan> plans = plan_modes(keywords(1 << 20, 1024)).at(1);
  const Plan& fewest = *std::ranges::min_element(plans, {}, &Plan::total_bytes);
  EXPECT_EQ(fewest.layout.shard_count, 48u);
  EXPECT_EQ(fewest.total_bytes, 17'583'104u);
  EXPECT_EQ(fewest.layout.pack_count(), 49u);
  EXPECT_EQ(cheapest(plans).layout.shard_count, 32u);
  EXPECT_EQ(cheapest(plans).layout.pack_count(), 33u);
  ASSERT_NE(at_shards(plans, 24), nullptr);
  EXPECT_GT(at_shards(plans, 24)->total_bytes, 1.15 * 17'583'104);
  EXPECT_EQ(at_shards(plans, 64), nullptr);
  const auto asked = plan_modes(in_mode(keywords(1 << 20, 1024), Mode::kPacked)).at(0);
  ASSERT_NE(at_shards(asked, 64), nullptr);
  EXPECT_EQ(at_shards(asked, 64)->total_bytes, 17'520'448u);
}

// 1000 keys of 100 kB have 98 packs and more in any number of shards: 2.5 GB compared with 0.2 GB.
TEST(PlanModes, LargeTablesAreNotMadeForAModeThatWasOnlyKept) {
  PlanRequest request = with_set(keywords(1000, 100'000), "ring-2048");
  EXPECT_FALSE(plan_modes(request).at(0).empty());
  request.is_inherited = true;
  EXPECT_THAT(input_error_of([&] { plan_modes(request); }),
              AllOf(HasSubstr("--mode packed"), HasSubstr("--mode hint")));
}

Plan costing(uint64_t bytes) {
  Plan plan;
  plan.layout.lwe = find_lwe_params("lwe-1774");
  plan.total_bytes = bytes;
  return plan;
}

TEST(PlanModes, OfEqualsTheFirstModeIsChosen) {
  const std::vector<std::vector<Plan>> equal = {{costing(5), costing(3)}, {costing(3), costing(4)}};
  EXPECT_EQ(&cheapest(equal), &equal[0][1]);
  const std::vector<std::vector<Plan>> less = {{costing(5), costing(3)}, {costing(4), costing(2)}};
  EXPECT_EQ(&cheapest(less), &less[1][1]);
}

// 100 keys have 2048 rows: the packing table is twelve times the matrix. Ten, 240 MiB of tables,
// are nothing to worry about; eleven are.
TEST(PlanModes, SmallPackingTablesNeedNotBeAskedFor) {
  PlanRequest request = keywords(100, 10 * 1024 - 8);
  request.shard_count = 1;
  EXPECT_EQ(sets_of(plan_modes(request)), (Sets{"lwe-1774", "ring-2048"}));
  EXPECT_EQ(cheapest(plan_modes(request)).layout.pack_count(), 10u);
  ++request.record.value_bytes;
  EXPECT_EQ(sets_of(plan_modes(request)), Sets{"lwe-1774"});
  const Plan asked = cheapest(plan_modes(in_mode(request, Mode::kPacked)));
  EXPECT_EQ(asked.layout.packing_table_bytes(), 11u * 25'141'248u);
}

// With these bits the bound of 192 rows is 2^-60 in the hint mode, and above 2^-40 where packing
// adds its noise to that of 2048 rows.
TEST(PlanModes, AModeWithoutALayoutIsLeftOut) {
  PlanRequest request = keywords(100, 3);
  request.query_bits = 24;
  request.response_bits = 10;
  request.hint_bits = 16;
  EXPECT_EQ(sets_of(plan_modes(request)), Sets{"lwe-1774"});
  const auto plan_packed = [&] { plan_modes(in_mode(request, Mode::kPacked)); };
  EXPECT_THAT(input_error_of(plan_packed),
              HasSubstr("(2048 rows, query_bits 24, response_bits 10"));
  request.shard_count = 1;
  request.response_bits = 9;
  EXPECT_THAT(input_error_of([&] { plan_modes(request); }),
              AllOf(HasSubstr("2^-40"),
                    HasSubstr("(192 rows, query_bits 24, response_bits 9, hint_bits 16)")))
      << "of both modes, the first says why";
}

TEST(Planner, PackedResponsesHaveAtMost2To24Rows) {
  PlanRequest request = with_set(numbered(1 << 24, 1), "ring-2048");
  request.shard_count = 1;
  EXPECT_EQ(plan_layouts(request).at(0).layout.row_count, 1u << 24);
  ++request.key_count;
  EXPECT_THAT(input_error_of([&] { plan_layouts(request); }), HasSubstr("more than 2^24 rows"));
  // 1.125 rows a key.
  request = with_set(with_shards(keywords(1 << 24, 1), 1), "ring-2048");
  EXPECT_THAT(input_error_of([&] { plan_layouts(request); }), HasSubstr("more than 2^24 rows"));
  request.lwe = nullptr;
  EXPECT_EQ(sets_of(plan_modes(request)), Sets{"lwe-1774"});
  // Where the number of shards is open, there are only more of them.
  request = with_set(keywords(1 << 24, 1), "ring-2048");
  EXPECT_EQ(plan_layouts(request).front().layout.shard_count, 2u);
}

// As a build does it, which plans again when it knows the fullest shard: with another row count,
// but with the same set.
TEST(Planner, PlansForTheFullestShardThatIsThere) {
  const PlanRequest request = with_set(keywords(1 << 20, 1024), "ring-2048");
  const auto plan = plan_shards(request, 32, 33'000);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->layout.lwe, request.lwe);
  // 33,000 keys have 39 segments of 1024 rows, and a block has two.
  EXPECT_EQ(plan->layout.row_count, 40 * 1024u);
  EXPECT_EQ(plan_shards(with_set(request, "lwe-1774"), 32, 33'000)->layout.row_count, 39 * 1024u);
}

// Whatever the sizes: the layout is one that a manifest may have, with as many blocks as its
// fullest shard needs.
TEST(Planner, EveryPackedLayoutIsSound) {
  size_t layouts = 0;
  for (const uint64_t keys : {uint64_t{1}, uint64_t{3000}, uint64_t{1'000'000}, kKeyCountMax}) {
    for (const uint32_t value : {1u, 1024u, kValueBytesMax}) {
      for (const uint32_t arity : {1u, 3u, 4u}) {
        PlanRequest request =
            with_set(arity == 1 ? numbered(keys, value) : keywords(keys, value), "ring-2048");
        if (arity > 1) request.arity = arity;
        for (const Plan& plan : plan_layouts(request)) {
          const Layout& layout = plan.layout;
          SCOPED_TRACE(std::to_string(keys) + " keys, " + std::to_string(value) + " bytes, " +
                       std::to_string(layout.shard_count) + " shards");
          EXPECT_EQ(input_error_of([&] { check_layout(layout); }), "");
          const uint64_t least =
              arity == 1
                  ? (keys + layout.shard_count - 1) / layout.shard_count
                  : fuse_shape(expected_fullest_shard(keys, layout.shard_count), arity).row_count;
          EXPECT_GE(layout.row_count, least);
          EXPECT_LT(layout.row_count, least + 2048);
          ++layouts;
        }
      }
    }
  }
  EXPECT_GT(layouts, 300u);
}

}  // namespace
}  // namespace blindfuse
