#include "host/publish/layout_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tests/publish/builder_testing.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using builder_testing::build;
using builder_testing::build_refusal;
using builder_testing::load;
using builder_testing::numbered_pairs;
using builder_testing::Pairs;
using builder_testing::snapshot;
using builder_testing::TemporaryFolder;
using support::input_error_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

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

BuildOptions with_levels(std::optional<uint32_t> levels, bool short_key = false) {
  BuildOptions options;
  options.levels = levels;
  options.short_key = short_key;
  return options;
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

Layout built_with_levels(uint32_t key_order) {
  Layout layout = built_with("ring-2048");
  layout.second = SecondLevel{.group_shards = 1, .key_order = key_order};
  return layout;
}

// Mode, set, levels and the keys of a request stay unless another one is asked for.
TEST(LayoutChecks, LeavesALayoutOnlyWhenAskedTo) {
  const Layout hint = built_with("lwe-1774"), packed = built_with("ring-2048"),
               two = built_with_levels(0), short_key = built_with_levels(64),
               sixteen = built_for_keys(16);
  Layout more_buckets = sixteen;
  more_buckets.batch->bucket_count = 48;
  BuildOptions one_key;
  one_key.one_key = true;
  const Reason mode = "the mode changed";
  const std::vector<std::tuple<Layout, BuildOptions, Reason>> cases = {
      {hint, {}, {}},
      {hint, with_set("lwe-1774"), {}},
      {built_with("lwe-1288"), with_mode(Mode::kHint), {}},
      {packed, with_mode(Mode::kPacked), {}},
      {packed, with_set("ring-2048"), {}},
      {hint, with_mode(Mode::kPacked), mode},
      {hint, with_set("ring-2048"), mode},
      {packed, with_mode(Mode::kHint), mode},
      {sixteen, with_mode(Mode::kHint), mode},
      {hint, with_set("lwe-1288"), "the LWE parameters changed"},
      {packed, with_levels(1), {}},
      {two, {}, {}},
      {two, with_levels(2), {}},
      {short_key, with_levels(2), {}},
      {short_key, with_levels(2, true), {}},
      {packed, with_levels(2, true), "the number of levels was 1 and is now to be 2"},
      {short_key, with_levels(1), "the number of levels was 2 and is now to be 1"},
      {two, with_levels(2, true), "queries carry no short key and are now to carry one"},
      {sixteen, {}, {}},
      {sixteen, with_keys(16), {}},
      {more_buckets, with_keys(16), {}},
      {sixteen, with_keys(64), "keys_per_request was 16 and is now to be 64"},
      {packed, with_keys(64), "requests were for one key and are now to be for 64"},
      {sixteen, one_key, "requests were for 16 keys and are now to be for 1"},
      {packed, one_key, {}},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto& [old, options, reason] = cases[i];
    EXPECT_EQ(why_not_kept(old, options, kSurvey), reason) << "case " << i;
  }
}

TEST(LayoutChecks, KeepsTheKeysOfARequestOfTheEpochBefore) {
  const Layout previous = built_for_keys(16);
  const std::optional<BatchCode> sixteen = BatchCode{16, 32};
  EXPECT_EQ(plan_request({}, kSurvey, &previous).batch, sixteen);
  EXPECT_EQ(plan_request(with_mode(Mode::kPacked), kSurvey, &previous).batch, sixteen);
  EXPECT_EQ(plan_request(with_set("ring-2048"), kSurvey, &previous).batch, sixteen);
  EXPECT_EQ(plan_request(with_keys(64), kSurvey, &previous).batch, (BatchCode{64, 96}));
  EXPECT_EQ(plan_request(with_keys(64), kSurvey).batch, (BatchCode{64, 96}));
  // Neither in the hint mode nor with two levels, nor where one key is asked for.
  EXPECT_EQ(plan_request(with_mode(Mode::kHint), kSurvey, &previous).batch, std::nullopt);
  BuildOptions one_key;
  one_key.one_key = true;
  EXPECT_EQ(plan_request(one_key, kSurvey, &previous).batch, std::nullopt);
  EXPECT_EQ(plan_request(one_key, kSurvey, &previous).mode, Mode::kPacked);
  EXPECT_EQ(plan_request(with_levels(2), kSurvey, &previous).batch, std::nullopt);
  // An epoch of two levels gets one when several keys are asked for.
  const Layout second = built_with_levels(0);
  EXPECT_EQ(plan_request(with_keys(64), kSurvey, &second).levels, 1u);
}

TEST(LayoutChecks, KeepsSetAndLevelsOfTheEpochBefore) {
  Layout previous = built_with("ring-2048");
  PlanRequest request = plan_request({}, kSurvey, &previous);
  EXPECT_EQ(request.lwe, previous.lwe);
  EXPECT_EQ(request.mode, Mode::kPacked);
  EXPECT_TRUE(request.is_inherited);
  EXPECT_EQ(request.levels, 1u);
  previous = built_with_levels(0);
  request = plan_request({}, kSurvey, &previous);
  EXPECT_EQ(request.levels, 2u);
  EXPECT_FALSE(request.short_key);
  previous = built_with_levels(16);
  EXPECT_TRUE(plan_request({}, kSurvey, &previous).short_key);
  EXPECT_EQ(plan_request(with_levels(1), kSurvey, &previous).levels, 1u);
  EXPECT_EQ(plan_request(with_mode(Mode::kHint), kSurvey, &previous).lwe, nullptr);
  EXPECT_EQ(plan_request(with_set("lwe-1288"), kSurvey, &previous).lwe,
            find_lwe_params("lwe-1288"));
}

TEST(LayoutChecks, RefusesAnInputThatLostMoreThanHalfOfTheKeys) {
  const TemporaryFolder folder;
  EXPECT_EQ(build(numbered_pairs(1001), folder / "db").keys_before, std::nullopt);
  const auto before = snapshot(folder / "db");
  BuildOptions options;
  const auto refusal = [&](int keys) {
    return build_refusal(numbered_pairs(keys), folder / "db", options);
  };
  EXPECT_THAT(refusal(1), AllOf(HasSubstr("the input has 1 key, and "), HasSubstr("has 1001 keys"),
                                HasSubstr("--allow-shrink")));
  EXPECT_THAT(refusal(500), HasSubstr("--allow-shrink"));
  EXPECT_EQ(snapshot(folder / "db"), before);
  EXPECT_EQ(build(numbered_pairs(501), folder / "db").keys_before, 1001u);
  options.allow_shrink = true;
  EXPECT_EQ(build(numbered_pairs(2), folder / "db", options).keys_before, 501u);
  options.allow_shrink = false;
  EXPECT_EQ(refusal(1), "");  // half of them
  build(numbered_pairs(100), folder / "db");
  options.fresh = true;
  EXPECT_EQ(build(numbered_pairs(1), folder / "db", options).keys_before, 100u);
}

TEST(LayoutChecks, RefusesAnotherKindOfDatabase) {
  const TemporaryFolder folder;
  BuildOptions index;
  index.input.kind = DatabaseKind::kIndex;
  build(numbered_pairs(10), folder / "keyword");
  build(numbered_pairs(10), folder / "index", index);
  for (const auto& [name, options, cure] : {std::tuple("keyword", index, "leave out --index"),
                                            {"index", BuildOptions(), "add --index"}}) {
    BuildOptions other = options;
    other.allow_shrink = true;
    const auto before = snapshot(folder / name);
    EXPECT_THAT(build_refusal(numbered_pairs(10), folder / name, other),
                AllOf(HasSubstr(cure), HasSubstr("--fresh")));
    EXPECT_EQ(snapshot(folder / name), before);
    other.fresh = true;
    build(numbered_pairs(10), folder / name, other);
    EXPECT_EQ(load(folder / name).manifest.layout.kind, options.input.kind);
  }
}

TEST(LayoutChecks, RefusesThatOneValueMakesADatabaseManyTimesItsInput) {
  const TemporaryFolder folder;
  Pairs pairs = numbered_pairs(2000, "a short value");
  pairs.emplace_back("long", std::string(20'000, 'x'));
  EXPECT_THAT(build_refusal(pairs, folder / "db"),
              AllOf(HasSubstr("which has 20000 bytes"), HasSubstr("the input has 60.9 kB"),
                    HasSubstr("--value-bytes-max 13 "), HasSubstr("package-index.md"),
                    HasSubstr("--allow-padding")));
  EXPECT_FALSE(std::filesystem::exists(folder / "db"));
  // A matrix of 2001 * (8 + 2 + 20000) bytes and more.
  Layout layout = built_with("lwe-1774");
  layout.row_count = 2304;
  layout.record = {8, 2, 20'000};
  Survey survey;
  survey.key_count = 2001;
  survey.longest_value = 20'000;
  const auto is_refused = [&](const BuildOptions& options, uint64_t input_bytes) {
    return !input_error_of([&] { check_padding(layout, options, survey, input_bytes); }).empty();
  };
  EXPECT_TRUE(is_refused({}, 60'000));
  EXPECT_FALSE(is_refused({}, 5'000'000));  // ten times as much is not
  BuildOptions options;
  options.allow_padding = true;
  EXPECT_FALSE(is_refused(options, 60'000));
  BuildOptions room;
  room.value_room = 20'000;  // asked for
  EXPECT_FALSE(is_refused(room, 60'000));
  layout.row_count = 448;  // less than 10 MB
  survey.key_count = 300;
  EXPECT_FALSE(is_refused({}, 20'000));
  // All are as long: that the rows come in blocks makes it large, and no value.
  layout = built_with("ring-2048");
  layout.record = {8, 0, 100'000};
  survey.key_count = 3;
  survey.longest_value = 100'000;
  EXPECT_FALSE(is_refused({}, 300'000));
}

// Anybody can write a manifest.
TEST(LayoutChecks, LeavesALayoutThatIsFarTooLarge) {
  Layout layout = built_with("ring-2048");
  layout.shard_count = 65'536;
  EXPECT_GT(layout.packing_table_bytes(), uint64_t{16} << 30);
  EXPECT_THAT(why_not_kept(layout, {}, kSurvey).value_or(""), HasSubstr("the layout takes "));
  BuildOptions options;
  options.shard_count = layout.shard_count;
  EXPECT_EQ(why_not_kept(layout, options, kSurvey), Reason());
}

// Up to 2048 keys without a filter; a filter of 2048 rows in segments of 64 has room for fewer.
TEST(LayoutChecks, KnowsWhetherShardsFit) {
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
