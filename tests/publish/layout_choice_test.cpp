#include "host/publish/layout_choice.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace blindfuse {
namespace {

using Reason = std::optional<std::string>;

Layout built_with(const char* set) {
  Layout layout;
  layout.key_count = 100;
  layout.row_count = 2048;
  layout.segment_length = 64;
  layout.record = {8, 0, 3};
  layout.lwe = find_lwe_params(set);
  return layout;
}

Survey survey_of_keys() {
  Survey survey;
  survey.key_count = 100;
  survey.shortest_value = 3;
  survey.longest_value = 3;
  return survey;
}

const Survey kSurvey = survey_of_keys();

BuildOptions with_mode(Mode mode) {
  BuildOptions options;
  options.mode = mode;
  return options;
}

BuildOptions with_set(const char* set) {
  BuildOptions options;
  options.lwe = find_lwe_params(set);
  options.mode = options.lwe->mode;  // as the commands do
  return options;
}

TEST(LayoutChoice, KeepsTheModeThatIsThere) {
  for (const char* set : {"lwe-1774", "lwe-1288", "ring-2048"}) {
    EXPECT_EQ(why_not_kept(built_with(set), {}, kSurvey), Reason()) << set;
    EXPECT_EQ(why_not_kept(built_with(set), with_set(set), kSurvey), Reason()) << set;
  }
  EXPECT_EQ(why_not_kept(built_with("lwe-1288"), with_mode(Mode::kHint), kSurvey), Reason());
  EXPECT_EQ(why_not_kept(built_with("ring-2048"), with_mode(Mode::kPacked), kSurvey), Reason());
}

TEST(LayoutChoice, LeavesAModeOnlyWhenAskedTo) {
  const Reason mode = "the mode changed";
  EXPECT_EQ(why_not_kept(built_with("lwe-1774"), with_mode(Mode::kPacked), kSurvey), mode);
  EXPECT_EQ(why_not_kept(built_with("lwe-1774"), with_set("ring-2048"), kSurvey), mode);
  EXPECT_EQ(why_not_kept(built_with("ring-2048"), with_mode(Mode::kHint), kSurvey), mode);
  const Reason set = "the LWE parameters changed";
  EXPECT_EQ(why_not_kept(built_with("lwe-1774"), with_set("lwe-1288"), kSurvey), set);
}

TEST(LayoutChoice, LeavesLevelsAndKeysOnlyWhenAskedTo) {
  const Layout one = built_with("ring-2048");
  Layout two = one;
  two.second = SecondLevel{.group_shards = 1, .key_order = 0};
  Layout short_key = two;
  short_key.second->key_order = 64;
  const auto reason = [](const Layout& old, std::optional<uint32_t> levels, bool has_short_key) {
    BuildOptions options;
    options.levels = levels;
    options.short_key = has_short_key;
    return why_not_kept(old, options, kSurvey);
  };
  for (const Layout& old : {one, two, short_key}) {
    EXPECT_EQ(reason(old, std::nullopt, false), Reason());
    EXPECT_EQ(reason(old, old.levels(), false), Reason());
  }
  EXPECT_EQ(reason(one, 2, true), Reason("the number of levels was 1 and is now to be 2"));
  EXPECT_EQ(reason(short_key, 1, false), Reason("the number of levels was 2 and is now to be 1"));
  EXPECT_EQ(reason(short_key, 2, true), Reason());
  EXPECT_EQ(reason(two, 2, true), Reason("queries carry no short key and are now to carry one"));
}

BuildOptions with_keys(uint32_t keys_per_request) {
  BuildOptions options;
  options.mode = Mode::kPacked;  // as the commands do
  options.batch = BatchCode{keys_per_request, usual_bucket_count(keys_per_request)};
  return options;
}

Layout built_for_keys(uint32_t keys_per_request) {
  Layout layout = built_with("ring-2048");
  layout.batch = with_keys(keys_per_request).batch;
  layout.shard_count = layout.bucket_count();
  return layout;
}

TEST(LayoutChoice, LeavesTheKeysOfARequestOnlyWhenAskedTo) {
  EXPECT_EQ(why_not_kept(built_for_keys(16), {}, kSurvey), Reason());
  EXPECT_EQ(why_not_kept(built_for_keys(16), with_keys(16), kSurvey), Reason());
  EXPECT_EQ(why_not_kept(built_for_keys(16), with_keys(64), kSurvey),
            Reason("keys_per_request was 16 and is now to be 64"));
  EXPECT_EQ(why_not_kept(built_with("ring-2048"), with_keys(64), kSurvey),
            Reason("requests were for one key and are now to be for 64"));
  EXPECT_EQ(why_not_kept(built_for_keys(16), with_mode(Mode::kHint), kSurvey),
            Reason("the mode changed"));
  BuildOptions one_key;
  one_key.one_key = true;
  EXPECT_EQ(why_not_kept(built_for_keys(16), one_key, kSurvey),
            Reason("requests were for 16 keys and are now to be for 1"));
  EXPECT_EQ(why_not_kept(built_with("ring-2048"), one_key, kSurvey), Reason());
  // Whatever the buckets are.
  Layout more_buckets = built_for_keys(16);
  more_buckets.batch->bucket_count = 48;
  EXPECT_EQ(why_not_kept(more_buckets, with_keys(16), kSurvey), Reason());
}

TEST(LayoutChoice, KeepsTheKeysOfARequestOfTheEpochBefore) {
  const Layout previous = built_for_keys(16);
  const std::optional<BatchCode> sixteen = BatchCode{16, 32};
  EXPECT_EQ(plan_request({}, kSurvey, &previous).batch, sixteen);
  EXPECT_EQ(plan_request(with_mode(Mode::kPacked), kSurvey, &previous).batch, sixteen);
  EXPECT_EQ(plan_request(with_set("ring-2048"), kSurvey, &previous).batch, sixteen);
  EXPECT_EQ(plan_request(with_keys(64), kSurvey, &previous).batch, (BatchCode{64, 96}));
  EXPECT_EQ(plan_request(with_keys(64), kSurvey).batch, (BatchCode{64, 96}));
  BuildOptions wish;
  wish.wish = PlanWish{};
  EXPECT_EQ(plan_request(wish, kSurvey, &previous).batch, sixteen);
  EXPECT_FALSE(plan_request(wish, kSurvey, &previous).levels_open);
  // Neither in the hint mode nor with two levels, nor where one key is asked for.
  EXPECT_EQ(plan_request(with_mode(Mode::kHint), kSurvey, &previous).batch, std::nullopt);
  BuildOptions one_key;
  one_key.one_key = true;
  EXPECT_EQ(plan_request(one_key, kSurvey, &previous).batch, std::nullopt);
  EXPECT_EQ(plan_request(one_key, kSurvey, &previous).mode, Mode::kPacked);
  BuildOptions two_levels;
  two_levels.levels = 2;
  EXPECT_EQ(plan_request(two_levels, kSurvey, &previous).batch, std::nullopt);
  // An epoch of two levels gets one when several keys are asked for.
  Layout second = built_with("ring-2048");
  second.second = SecondLevel{};
  EXPECT_EQ(plan_request(with_keys(64), kSurvey, &second).levels, 1u);
}

TEST(LayoutChoice, HandsOnWhatIsOpen) {
  const PlanRequest open = plan_request({}, kSurvey);
  EXPECT_EQ(open.mode, std::nullopt);
  EXPECT_EQ(open.lwe, nullptr);
  EXPECT_EQ(plan_request(with_mode(Mode::kPacked), kSurvey).mode, Mode::kPacked);
  EXPECT_EQ(plan_request(with_mode(Mode::kPacked), kSurvey).lwe, nullptr);
  EXPECT_EQ(plan_request(with_set("lwe-1572"), kSurvey).lwe, find_lwe_params("lwe-1572"));
}

TEST(LayoutChoice, OpensLevelsWithAWish) {
  EXPECT_FALSE(plan_request({}, kSurvey).levels_open);
  BuildOptions wish;
  wish.wish = PlanWish{};
  EXPECT_TRUE(plan_request(wish, kSurvey).levels_open);
  wish.levels = 1;
  EXPECT_FALSE(plan_request(wish, kSurvey).levels_open);
}

TEST(LayoutChoice, KeepsSetAndLevelsOfTheEpochBefore) {
  Layout previous = built_with("ring-2048");
  PlanRequest request = plan_request({}, kSurvey, &previous);
  EXPECT_EQ(request.lwe, previous.lwe);
  EXPECT_EQ(request.mode, Mode::kPacked);
  EXPECT_TRUE(request.is_unasked);
  EXPECT_EQ(request.levels, 1u);
  previous.second = SecondLevel{};
  request = plan_request({}, kSurvey, &previous);
  EXPECT_EQ(request.levels, 2u);
  EXPECT_FALSE(request.short_key);
  previous.second->key_order = 16;
  EXPECT_TRUE(plan_request({}, kSurvey, &previous).short_key);
  BuildOptions one_level;
  one_level.levels = 1;
  EXPECT_EQ(plan_request(one_level, kSurvey, &previous).levels, 1u);
  EXPECT_EQ(plan_request(with_mode(Mode::kHint), kSurvey, &previous).lwe, nullptr);
  EXPECT_EQ(plan_request(with_set("lwe-1288"), kSurvey, &previous).lwe,
            find_lwe_params("lwe-1288"));
}

// Up to 2048 keys without a filter; a filter of 2048 rows in segments of 64 has room for fewer.
TEST(LayoutChoice, KnowsWhetherShardsFit) {
  Layout numbers = built_with("lwe-1774");
  numbers.kind = DatabaseKind::kIndex;
  EXPECT_EQ(why_shards_do_not_fit(numbers, 2048), Reason());
  EXPECT_EQ(why_shards_do_not_fit(numbers, 2049),
            Reason("the fullest shard now has 2049 keys, more than 2048 rows hold"));
  EXPECT_EQ(why_shards_do_not_fit(built_with("lwe-1774"), 1000), Reason());
  EXPECT_NE(why_shards_do_not_fit(built_with("lwe-1774"), 2048), Reason());
}

}  // namespace
}  // namespace blindfuse
