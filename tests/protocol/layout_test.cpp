#include "src/arithmetic/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/protocol/manifest.h"
#include "tests/support.h"
#include "tests/vectors.h"

namespace blindfuse {
namespace {

using support::input_error_of;
using vectors::json;

Layout layout_of(const json& m) {
  Layout layout;
  layout.kind = m.at("kind") == "index" ? DatabaseKind::kIndex : DatabaseKind::kKeyword;
  layout.key_count = m.at("key_count");
  layout.shard_count = m.at("shard_count");
  layout.row_count = m.at("row_count");
  layout.arity = m.at("arity");
  layout.segment_length = m.at("segment_length");
  layout.record = {m.at("digest_bytes"), m.at("length_bytes"), m.at("value_bytes")};
  layout.lwe = find_lwe_params(m.at("lwe").get<std::string>());
  layout.query_bits = m.at("query_bits");
  layout.response_bits = m.at("response_bits");
  layout.hint_bits = m.at("hint_bits");
  if (layout.mode() == Mode::kPacked && m.at("levels") == 2) {
    layout.second = {.group_shards = m.at("shards_a_group"),
                     .query_bits = m.at("query2_bits"),
                     .mask_bits = m.at("mask2_bits"),
                     .response_bits = m.at("response2_bits"),
                     .key_order = m.at("short_key_order")};
  }
  if (m.contains("bucket_count")) {
    layout.batch = {.keys_per_request = m.at("keys_per_request"),
                    .bucket_count = m.at("bucket_count")};
  }
  return layout;
}

void expect_derived(const Layout& layout, const json& derived) {
  ASSERT_NE(layout.lwe, nullptr);
  EXPECT_EQ(layout.lwe->dimension, derived.at("dimension"));
  EXPECT_EQ(layout.record_bytes(), derived.at("record_bytes"));
  EXPECT_EQ(layout.column_count(), derived.at("column_count"));
  EXPECT_EQ(layout.query_bytes(), derived.at("query_bytes"));
  EXPECT_EQ(layout.response_bytes(), derived.at("response_bytes"));
  EXPECT_EQ(layout.hint_part_bytes(), derived.at("hint_bytes"));
  const bool is_packed = layout.lwe->mode == Mode::kPacked;
  const uint64_t parts = is_packed ? derived.at("pack_count").get<uint64_t>() : layout.shard_count;
  EXPECT_EQ(layout.hint_bytes(), layout.hint_part_bytes() * parts);
  EXPECT_EQ(layout.second.has_value(), derived.contains("group_count"));
  if (layout.second) {
    EXPECT_EQ(layout.second_row_count(), derived.at("group_count"));
    EXPECT_EQ(layout.second_column_count(), derived.at("group_columns"));
    EXPECT_EQ(layout.second_pack_count(), derived.at("group_pack_count"));
  }
  EXPECT_EQ(layout.shard_matrix_bytes(), uint64_t{layout.row_count} * layout.record_bytes());
  EXPECT_EQ(layout.matrix_bytes(), uint64_t{layout.row_count} * layout.column_count());
}

TEST(Layout, HasTheSizesOfTheVectors) {
  const json file = vectors::read_vectors("manifest.json");
  for (const json& c : file.at("valid")) {
    SCOPED_TRACE(c.at("name"));
    const Layout layout = layout_of(c.at("manifest"));
    expect_derived(layout, c.at("derived"));
    check_layout(layout);
  }
  for (const char* name : {"database_keyword.json", "database_index.json"}) {
    const json database = vectors::read_vectors(name);
    const Layout layout = layout_of(database.at("manifest"));
    expect_derived(layout, database.at("derived"));
    check_layout(layout);
  }
}

TEST(Layout, HasTheSizesOfItsBuckets) {
  const json file = vectors::read_vectors("manifest.json");
  const json& valid = file.at("valid");
  const auto found = std::find_if(valid.begin(), valid.end(),
                                  [](const json& c) { return c.at("name") == "batch"; });
  ASSERT_NE(found, valid.end());
  Layout layout = layout_of(found->at("manifest"));
  EXPECT_EQ(layout.bucket_count(), 96u);
  EXPECT_EQ(layout.bucket_shard_count(), 3u);
  EXPECT_EQ(layout.bucket_column_count(), 3'096u);
  EXPECT_EQ(layout.record_count(), 3'145'728u);
  EXPECT_EQ(layout.query_word_count(), 1'376'256u);
  EXPECT_EQ(layout.query_words_bytes(), 4'300'800u);
  layout.batch.reset();
  EXPECT_EQ(layout.bucket_count(), 1u);
  EXPECT_EQ(layout.bucket_shard_count(), 288u);
  EXPECT_EQ(layout.bucket_column_count(), layout.column_count());
  EXPECT_EQ(layout.record_count(), 1'048'576u);
  EXPECT_EQ(layout.query_word_count(), 14'336u);
}

TEST(Layout, HasTheUsualNumberOfBuckets) {
  EXPECT_EQ(usual_bucket_count(2), 12u);
  EXPECT_EQ(usual_bucket_count(12), 32u);
  EXPECT_EQ(usual_bucket_count(16), 32u);
  EXPECT_EQ(usual_bucket_count(17), 34u);
  EXPECT_EQ(usual_bucket_count(48), 96u);
  EXPECT_EQ(usual_bucket_count(64), 96u);
  EXPECT_EQ(usual_bucket_count(65), 98u);
  EXPECT_EQ(usual_bucket_count(1024), 1536u);
  for (uint32_t keys = kKeysPerRequestMin; keys <= kKeysPerRequestMax; ++keys) {
    EXPECT_GE(usual_bucket_count(keys), std::max(keys, kBucketChoices));
    EXPECT_LE(usual_bucket_count(keys), kBucketCountMax);
    EXPECT_GE(usual_bucket_count(keys + 1), usual_bucket_count(keys));
  }
}

Layout good_keyword() {
  Layout layout;
  layout.key_count = 1000;
  layout.row_count = 768;
  layout.segment_length = 64;
  layout.record = {8, 1, 20};
  layout.lwe = &lwe_params().front();
  return layout;
}

Layout good_index() {
  Layout layout = good_keyword();
  layout.kind = DatabaseKind::kIndex;
  layout.key_count = 768;
  layout.arity = 1;
  layout.segment_length = 0;
  layout.record = {0, 0, 20};
  return layout;
}

// 5 shards of 300 columns: C = 1500, two packs.
Layout good_packed() {
  Layout layout;
  layout.key_count = 1000;
  layout.shard_count = 5;
  layout.row_count = 4096;
  layout.segment_length = 256;
  layout.record = {8, 2, 290};
  layout.lwe = find_lwe_params("ring-2048");
  layout.query_bits = 26;
  layout.response_bits = 11;
  layout.hint_bits = 18;
  return layout;
}

TEST(PackedLayout, HasItsSizes) {
  const Layout layout = good_packed();
  EXPECT_EQ(input_error_of([&] { check_layout(layout); }), "");
  EXPECT_EQ(layout.mode(), Mode::kPacked);
  EXPECT_EQ(layout.pack_count(), 2u);
  EXPECT_EQ(layout.query_words_bytes(), 13'312u);     // 4096 * 26 / 8
  EXPECT_EQ(layout.query_bytes(), 13'312u + 24'576);  // three times 2048 words after them
  EXPECT_EQ(layout.response_bytes(), 2'063u);         // 1500 * 11 / 8
  EXPECT_EQ(layout.hint_part_count(), 2u);
  EXPECT_EQ(layout.hint_part_words(), 2'048u);
  EXPECT_EQ(layout.hint_part_bytes(), 4'608u);  // 2048 * 18 / 8
  EXPECT_EQ(layout.hint_bytes(), 9'216u);
  EXPECT_EQ(layout.shard_matrix_bytes(), 4'096u * 300);
  const NoiseBudget noise = layout.noise();
  // As in noise_budget_test.cpp: with 22962416298.67 of the query and 30541989888 of the mask
  // 7340032^2 / (2 * 87067786035.20) = 309.391522481, which is 446.357615177 ln 2.
  EXPECT_NEAR(noise.packing_variance, 1.1 * 274'609'471'488.0 / 9, 1);
  EXPECT_NEAR(noise.log2_failure, -437.12879648645134, 1e-9);
}

TEST(PackedLayout, IsNoOtherInTheModeOfHints) {
  Layout layout = good_packed();
  layout.lwe = find_lwe_params("lwe-1288");
  EXPECT_EQ(layout.mode(), Mode::kHint);
  EXPECT_EQ(layout.pack_count(), 0u);
  EXPECT_EQ(layout.query_bytes(), 13'312u);
  EXPECT_EQ(layout.query_words_bytes(), 13'312u);
  EXPECT_EQ(layout.hint_part_count(), 5u);
  EXPECT_EQ(layout.hint_part_words(), 300u * 1288);
  EXPECT_EQ(layout.hint_parts_of(4), (HintParts{4, 4}));
  EXPECT_EQ(layout.noise().packing_variance, 0.0);
}

// Of a number of shards of this many columns: how many packs there are, and those of a shard.
struct Packs {
  uint32_t shard_count;
  uint32_t record_bytes;
  uint32_t pack_count;
  std::vector<std::pair<uint32_t, HintParts>> parts;
};

TEST(PackedLayout, KnowsThePacksOfEveryShard) {
  const std::vector<Packs> cases = {
      // 0 .. 299, .., 900 .. 1199, 1200 .. 1499: shard 3 alone lies in both, and so all have both.
      {5, 300, 2, {{0, {0, 1}}, {1, {0, 1}}, {2, {0, 1}}, {3, {0, 1}}, {4, {0, 1}}}},
      // 3000 .. 3499 ends in pack 3, 3500 .. 3999 lies in it alone, and 4000 .. 4499 begins in it.
      {9, 500, 5, {{0, {0, 1}}, {2, {0, 1}}, {3, {1, 2}}, {6, {2, 3}}, {7, {3, 4}}, {8, {3, 4}}}},
      // Two shards fill a pack, and 64 do: none lies in two.
      {5, 512, 3, {{0, {0, 0}}, {1, {0, 0}}, {2, {1, 1}}, {3, {1, 1}}, {4, {2, 2}}}},
      {1000, 16, 16, {{0, {0, 0}}, {63, {0, 0}}, {64, {1, 1}}, {999, {15, 15}}}},
      {3, 1024, 3, {{0, {0, 0}}, {1, {1, 1}}, {2, {2, 2}}}},
      {1, 1024, 1, {{0, {0, 0}}}},
      // 0 .. 1024, 1025 .. 2049
      {2, 1025, 3, {{0, {0, 1}}, {1, {1, 2}}}},
      {1, 2500, 3, {{0, {0, 2}}}},
      // 0 .. 1499, 1500 .. 2999 and 3000 .. 4499: the last begins 72 columns before its pack ends.
      {3, 1500, 5, {{0, {0, 2}}, {1, {1, 3}}, {2, {2, 4}}}},
      // 1008 .. 1016, 1017 .. 1025, 1026 .. 1034
      {65'536,
       9,
       576,
       {{0, {0, 1}}, {112, {0, 1}}, {113, {0, 1}}, {114, {1, 2}}, {65'535, {574, 575}}}},
      // The last shard's columns are beyond 2^32: 65535 * 131080 = 1024 * 8388991 + 1016 is the
      // first.
      {65'536, 131'080, 8'389'120, {{0, {0, 128}}, {65'535, {8'388'991, 8'389'119}}}},
  };
  for (const Packs& packs : cases) {
    SCOPED_TRACE(std::to_string(packs.shard_count) + " of " + std::to_string(packs.record_bytes));
    Layout layout = good_packed();
    layout.shard_count = packs.shard_count;
    layout.record = {8, 0, packs.record_bytes - 8};
    EXPECT_EQ(layout.pack_count(), packs.pack_count);
    EXPECT_EQ(layout.hint_part_count(), packs.pack_count);
    EXPECT_EQ(layout.hint_bytes(), uint64_t{packs.pack_count} * 4608);
    for (const auto& [shard, parts] : packs.parts) {
      const HintParts found = layout.hint_parts_of(shard);
      EXPECT_EQ(found.first, parts.first) << shard;
      EXPECT_EQ(found.last, parts.last) << shard;
    }
  }
}

// The most packs that a shard of this many columns can lie in, wherever it begins: 1024 shards in a
// row have every beginning that there is.
uint64_t most_packs(uint64_t record_bytes) {
  uint64_t most = 0;
  for (uint64_t first = 0; first < 1024 * record_bytes; first += record_bytes) {
    most = std::max(most, (first + record_bytes - 1) / 1024 - first / 1024 + 1);
  }
  return most;
}

// Nothing that is done with a shard's packs tells which shard it is but the packs themselves.
TEST(PackedLayout, HasAsManyPacksForEveryShard) {
  for (const uint32_t bytes :
       {1u,    2u,    7u,    8u,    9u,    32u,   600u,  1000u, 1023u, 1024u,   1025u,
        1201u, 2047u, 2048u, 2049u, 3000u, 4095u, 4096u, 4097u, 4201u, 131'080u}) {
    const uint64_t most = most_packs(bytes);
    for (const uint32_t shards : {1u, 2u, 3u, 5u, 100u, 2048u, 5000u}) {
      SCOPED_TRACE(std::to_string(shards) + " of " + std::to_string(bytes));
      Layout layout = good_packed();
      layout.shard_count = shards;
      layout.record = {0, 0, bytes};
      const uint64_t count = std::min<uint64_t>(most, layout.pack_count());
      for (uint64_t shard = 0; shard < shards; ++shard) {
        const HintParts parts = layout.hint_parts_of(static_cast<uint32_t>(shard));
        ASSERT_LE(parts.first, shard * bytes / 1024) << shard;
        ASSERT_GE(parts.last, (shard * bytes + bytes - 1) / 1024) << shard;
        ASSERT_LT(parts.last, layout.pack_count()) << shard;
        ASSERT_EQ(uint64_t{parts.last} - parts.first + 1, count) << shard;
      }
    }
  }
}

// Two groups of 3 and of 2 shards, 900 columns wide.
Layout good_two_levels() {
  Layout layout = good_packed();
  layout.response_bits = 10;
  layout.second = SecondLevel{
      .group_shards = 3, .query_bits = 25, .mask_bits = 19, .response_bits = 13, .key_order = 0};
  return layout;
}

TEST(TwoLevels, HaveTheirSizes) {
  const Layout layout = good_two_levels();
  EXPECT_EQ(input_error_of([&] { check_layout(layout); }), "");
  EXPECT_EQ(layout.second_row_count(), 2u);
  EXPECT_EQ(layout.second_column_count(), 900u);
  EXPECT_EQ(layout.second_pack_count(), 1u);
  EXPECT_EQ(layout.second_key_switches(), 1023u);
  EXPECT_EQ(layout.second_query_bytes(), 7u);             // 2 * 25 bits, and 6 unused
  EXPECT_EQ(layout.query_words_bytes(), 13'312u);         // as with one level
  EXPECT_EQ(layout.query_bytes(), 13'312u + 24'576 + 7);  // words, key, numbers
  EXPECT_EQ(layout.response_bytes(), 4'864u + 1'463);     // 2048 * 19 / 8, and 900 * 13 / 8
  EXPECT_EQ(layout.pack_count(), 2u);
  EXPECT_EQ(layout.hint_bytes(), 9'216u);
  // 2^18 * 2 * (2/3 + 1365.5) = 716264789.33; (2/3) * 2048 * 5592405.5 = 7635497642.67; with
  // 33563379848.53 of packing 1835008^2 / (2 * 41915142280.53) = 40.167516760, which is
  // 57.949477234 ln 2; and 300 words. The first level's bound is 2^-318.7.
  EXPECT_NEAR(layout.log2_failure(), -48.72065854332278, 1e-9);
}

TEST(TwoLevels, HaveTheirSizesWithAShortKey) {
  Layout layout = good_two_levels();
  layout.second->group_shards = 1;
  layout.second->key_order = 512;
  EXPECT_EQ(input_error_of([&] { check_layout(layout); }), "");
  EXPECT_EQ(layout.second_row_count(), 5u);
  EXPECT_EQ(layout.second_column_count(), 300u);
  EXPECT_EQ(layout.second_pack_count(), 1u);
  EXPECT_EQ(layout.second_key_switches(), 511u);
  EXPECT_EQ(layout.query_bytes(), 13'312u + 2 * 24'576 + 16);  // 5 * 25 bits, and 3 unused
  EXPECT_EQ(layout.response_bytes(), 4'864u + 488);            // 300 * 13 / 8
  // 2^18 * 5 * (2/3 + 1365.5) = 1790661973.33; 511/1023 of the packing, 16765285535.29:
  // 1835008^2 / (2 * 26191445151.29) = 64.281568569, which is 92.738700339 ln 2.
  EXPECT_NEAR(layout.log2_failure(), -83.50988164878290, 1e-9);
}

TEST(TwoLevels, HaveSeveralMasksWhereAShardIsWiderThanAPack) {
  Layout layout = good_two_levels();
  layout.record = {8, 2, 2490};
  layout.second->group_shards = 1;
  EXPECT_EQ(input_error_of([&] { check_layout(layout); }), "");
  EXPECT_EQ(layout.second_column_count(), 2'500u);
  EXPECT_EQ(layout.second_pack_count(), 3u);
  EXPECT_EQ(layout.query_bytes(), 13'312u + 24'576 + 16);
  EXPECT_EQ(layout.response_bytes(), 3u * 4'864 + 4'063);  // 2500 * 13 / 8
  // A group of one shard as wide as a pack, and one column more.
  layout.record = {8, 2, 1014};
  EXPECT_EQ(layout.second_pack_count(), 1u);
  layout.record = {8, 2, 1015};
  EXPECT_EQ(layout.second_pack_count(), 2u);
}

// Shard x is in group x div g, and begins at column W (x mod g): docs/PROTOCOL.md, section 20.
TEST(TwoLevels, HaveEveryShardInItsGroup) {
  Layout layout = good_two_levels();  // records of 300 bytes
  const std::vector<SecondPlace> three = {{0, 0}, {0, 300}, {0, 600}, {1, 0}, {1, 300}};
  for (uint32_t shard = 0; shard < three.size(); ++shard) {
    EXPECT_EQ(layout.second_place(shard), three[shard]) << shard;
  }
  layout.second->group_shards = 1;
  EXPECT_EQ(layout.second_place(4), (SecondPlace{4, 0}));
  layout.record = {8, 2, 6};
  layout.shard_count = 65'536;
  layout.second->group_shards = 7;
  EXPECT_EQ(layout.second_place(65'533), (SecondPlace{9'361, 96}));  // 65533 is 7 * 9361 + 6
  EXPECT_EQ(layout.second_place(65'534), (SecondPlace{9'362, 0}));
  EXPECT_EQ(layout.second_place(65'535), (SecondPlace{9'362, 16}));
}

// Of 2^-75.43 and 2^-62.36.
TEST(TwoLevels, FailWhereEitherLevelDoes) {
  Layout layout = good_packed();
  layout.shard_count = 100;
  layout.row_count = 10'240;
  layout.segment_length = 512;
  layout.record = {8, 2, 22};
  layout.query_bits = 32;
  layout.response_bits = 9;
  layout.hint_bits = 17;
  EXPECT_NEAR(layout.log2_failure(), -75.42851824908770, 1e-9);
  layout.second = SecondLevel{
      .group_shards = 2, .query_bits = 24, .mask_bits = 17, .response_bits = 12, .key_order = 64};
  EXPECT_NEAR(layout.noise().log2_failure, -75.42851824908770, 1e-9);
  EXPECT_NEAR(layout.log2_failure(), -62.35706905004340, 1e-9);
}

struct SecondRange {
  std::string member;
  uint32_t SecondLevel::*number;
  std::vector<uint32_t> good;
  std::vector<uint32_t> bad;
};

TEST(TwoLevels, TakeEachNumberInItsRangeOnly) {
  const std::vector<SecondRange> ranges = {
      {"shards_a_group", &SecondLevel::group_shards, {1, 2, 3}, {0, 6, UINT32_MAX}},
      {"query2_bits", &SecondLevel::query_bits, {25, 32}, {0, 15, 33, UINT32_MAX}},
      {"mask2_bits", &SecondLevel::mask_bits, {19, 32}, {0, 15, 33, UINT32_MAX}},
      {"response2_bits", &SecondLevel::response_bits, {13, 32}, {0, 9, 10, 33, UINT32_MAX}},
      {"short_key_order", &SecondLevel::key_order, {0}, {1, 3, 96, 513, 1024, 2048, UINT32_MAX}},
  };
  for (const SecondRange& range : ranges) {
    for (const bool is_good : {true, false}) {
      for (const uint32_t value : is_good ? range.good : range.bad) {
        SCOPED_TRACE(range.member + " = " + std::to_string(value));
        Layout layout = good_two_levels();
        (*layout.second).*range.number = value;
        const std::string message = input_error_of([&] { check_layout(layout); });
        EXPECT_EQ(message.empty(), is_good) << message;
        if (!is_good) {
          EXPECT_NE(message.find(range.member), std::string::npos) << message;
        }
      }
    }
  }
}

// The fewest bits of each kind are in range, and too few for this noise.
TEST(TwoLevels, RefuseABoundAbove40Bits) {
  for (const auto& [number, fewest] :
       {std::pair{&SecondLevel::query_bits, 16u}, std::pair{&SecondLevel::mask_bits, 16u},
        std::pair{&SecondLevel::response_bits, 11u}}) {
    Layout layout = good_two_levels();
    (*layout.second).*number = fewest;
    const std::string message = input_error_of([&] { check_layout(layout); });
    EXPECT_NE(message.find("2^-40"), std::string::npos) << message;
    EXPECT_NE(message.find("second level's bits"), std::string::npos) << message;
  }
}

TEST(TwoLevels, HaveGroupsThatFitIntoAPack) {
  const auto message_of = [](uint32_t group_shards, uint32_t record_bytes, uint32_t key_order) {
    Layout layout = good_two_levels();
    layout.record = {8, 2, record_bytes - 10};
    layout.second->group_shards = group_shards;
    layout.second->key_order = key_order;
    return input_error_of([&] { check_layout(layout); });
  };
  EXPECT_EQ(message_of(2, 512, 0), "");  // 1024 columns
  EXPECT_NE(message_of(2, 513, 0).find("at most 1024"), std::string::npos);
  EXPECT_NE(message_of(4, 300, 0).find("shards_a_group"), std::string::npos);
  EXPECT_EQ(message_of(1, 1200, 0), "");
  EXPECT_EQ(message_of(4, 16, 64), "");  // 64 columns
  for (const auto& [group_shards, record_bytes, key_order] :
       {std::array{4u, 17u, 64u}, std::array{5u, 16u, 64u}, std::array{1u, 300u, 256u},
        std::array{1u, 1200u, 512u}}) {
    const std::string message = message_of(group_shards, record_bytes, key_order);
    EXPECT_NE(message.find("short_key_order must be at least"), std::string::npos) << message;
  }
}

TEST(TwoLevels, AreForPackedResponsesOnly) {
  Layout layout = good_keyword();
  layout.second = SecondLevel{
      .group_shards = 1, .query_bits = 32, .mask_bits = 32, .response_bits = 32, .key_order = 0};
  layout.response_bits = 10;
  const std::string message = input_error_of([&] { check_layout(layout); });
  EXPECT_NE(message.find("packed responses"), std::string::npos) << message;
}

TEST(PackedLayout, HasRowsInWholeBlocksOnly) {
  const auto message_of = [](uint32_t row_count, uint32_t segment_length) {
    Layout layout = good_packed();
    layout.row_count = row_count;
    layout.segment_length = segment_length;
    layout.query_bits = layout.response_bits = layout.hint_bits = 32;
    return input_error_of([&] { check_layout(layout); });
  };
  for (const uint32_t rows : {2048u, 3u * 2048, 1u << 23, 1u << 24}) {
    EXPECT_EQ(message_of(rows, 64), "") << rows;
  }
  for (const uint32_t rows : {64u, 1024u, 2048u + 64, 2048u + 1024, (1u << 24) + 2048, 1u << 25}) {
    const std::string message = message_of(rows, 64);
    for (const char* part : {"row_count", "multiple of 2048", "2^24"}) {
      EXPECT_NE(message.find(part), std::string::npos) << rows << ": " << message;
    }
  }
  EXPECT_NE(message_of(2048, 1024).find("arity segments"), std::string::npos);
}

struct Range {
  std::string member;
  uint32_t Layout::*number;
  std::vector<uint32_t> good;
  std::vector<uint32_t> bad;
};

TEST(CheckLayout, TakesEachNumberInItsRangeOnly) {
  const std::vector<Range> ranges = {
      {"shard_count", &Layout::shard_count, {1, 65'536}, {0, 65'537, UINT32_MAX}},
      {"row_count", &Layout::row_count, {192, 256, 1u << 20}, {0, 32, 63, 65, 224, 193}},
      {"row_count", &Layout::row_count, {}, {(1u << 31) + 64, UINT32_MAX - 63}},
      {"row_count", &Layout::row_count, {}, {64, 128}},  // fewer segments than the arity
      {"arity", &Layout::arity, {3, 4}, {0, 1, 2, 5, UINT32_MAX}},
      {"segment_length", &Layout::segment_length, {64, 128, 256}, {0, 32, 63, 65, 96, 192}},
      {"segment_length", &Layout::segment_length, {}, {1u << 19, UINT32_MAX}},
      {"query_bits", &Layout::query_bits, {24, 32}, {0, 23, 33, UINT32_MAX}},
      {"response_bits", &Layout::response_bits, {9, 32}, {0, 8, 33, UINT32_MAX}},
      {"hint_bits", &Layout::hint_bits, {16, 32}, {0, 15, 33, UINT32_MAX}},
  };
  for (const Range& range : ranges) {
    for (const bool is_good : {true, false}) {
      for (const uint32_t value : is_good ? range.good : range.bad) {
        SCOPED_TRACE(range.member + " = " + std::to_string(value));
        Layout layout = good_keyword();
        layout.*range.number = value;
        const std::string message = input_error_of([&] { check_layout(layout); });
        EXPECT_EQ(message.empty(), is_good) << message;
        if (!is_good) {
          EXPECT_NE(message.find(range.member), std::string::npos) << message;
        }
      }
    }
  }
}

TEST(CheckLayout, TakesKeyCountsInTheirRangeOnly) {
  for (const uint64_t count : {uint64_t{1}, kKeyCountMax, uint64_t{0}, kKeyCountMax + 1}) {
    Layout layout = good_keyword();
    layout.key_count = count;
    const bool is_good = count >= 1 && count <= kKeyCountMax;
    const std::string message = input_error_of([&] { check_layout(layout); });
    EXPECT_EQ(message.empty(), is_good) << message;
    if (!is_good) {
      EXPECT_NE(message.find("key_count"), std::string::npos) << message;
    }
  }
}

TEST(CheckLayout, TakesRecordFormatsThatTheProtocolAllows) {
  const auto message_of = [](Layout layout, RecordFormat record) {
    layout.record = record;
    return input_error_of([&] { check_layout(layout); });
  };
  const std::vector<std::pair<RecordFormat, bool>> keyword = {
      {{1, 0, 0}, true},        {{16, 4, 131'072}, true}, {{0, 0, 5}, false},
      {{17, 0, 5}, false},      {{8, 3, 5}, false},       {{8, 5, 5}, false},
      {{8, 1, 255}, true},      {{8, 1, 256}, false},     {{8, 2, 65'535}, true},
      {{8, 2, 65'536}, false},  {{8, 4, 65'536}, true},   {{8, 0, 131'072}, true},
      {{8, 0, 131'073}, false}, {{8, 4, 131'073}, false}, {{8, UINT32_MAX, 1}, false},
  };
  for (const auto& [record, is_good] : keyword) {
    const std::string message = message_of(good_keyword(), record);
    EXPECT_EQ(message.empty(), is_good) << record.digest_bytes << ' ' << record.length_bytes << ' '
                                        << record.value_bytes << ": " << message;
    if (!is_good) {
      EXPECT_NE(message.find("_bytes"), std::string::npos) << message;
    }
  }
  EXPECT_EQ(message_of(good_index(), {0, 0, 1}), "");
  EXPECT_EQ(message_of(good_index(), {0, 1, 0}), "");
  EXPECT_NE(message_of(good_index(), {0, 0, 0}), "");
  EXPECT_NE(message_of(good_index(), {8, 0, 1}), "");
}

TEST(CheckLayout, WantsRoomForEveryIndex) {
  Layout layout = good_index();
  layout.shard_count = 3;
  for (const uint64_t count : {3u * 768u, 3u * 768u - 1, 1u}) {
    layout.key_count = count;
    EXPECT_EQ(input_error_of([&] { check_layout(layout); }), "");
  }
  for (const uint64_t count : {uint64_t{3 * 768 + 1}, kKeyCountMax}) {
    layout.key_count = count;
    EXPECT_NE(input_error_of([&] { check_layout(layout); }).find("key_count"), std::string::npos);
  }
}

TEST(CheckLayout, WantsAnIndexWithoutAFilter) {
  Layout layout = good_index();
  layout.arity = 3;
  EXPECT_NE(input_error_of([&] { check_layout(layout); }).find("arity"), std::string::npos);
  layout = good_index();
  layout.segment_length = 64;
  EXPECT_NE(input_error_of([&] { check_layout(layout); }).find("segment_length"),
            std::string::npos);
}

// At 1,179,648 rows and these bits the bound is 2^-53.8; with 27 query bits it is 2^-7.9.
TEST(CheckLayout, RefusesABoundAbove40Bits) {
  Layout layout = good_keyword();
  layout.segment_length = 8192;
  layout.row_count = 8192 * 144;
  layout.record.value_bytes = 240;
  layout.query_bits = 28;
  layout.response_bits = 10;
  layout.hint_bits = 18;
  EXPECT_EQ(input_error_of([&] { check_layout(layout); }), "");
  layout.query_bits = 27;
  const std::string message = input_error_of([&] { check_layout(layout); });
  for (const char* part :
       {"2^-40", "1179648 rows", "query_bits 27", "response_bits 10", "hint_bits 18"}) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

// An attack that takes advantage of errors with three values (docs/PARAMETERS.md, section 1).
TEST(CheckLayout, WantsRoundedQueriesWhereThereAreManyTernaryErrors) {
  Layout layout = good_index();
  layout.response_bits = layout.hint_bits = 32;
  for (const char* set : {"lwe-1774", "lwe-1572"}) {
    layout.lwe = find_lwe_params(set);
    layout.query_bits = 32;
    layout.row_count = 1u << 24;
    EXPECT_EQ(input_error_of([&] { check_layout(layout); }), "") << set;
    layout.row_count += kPanelRows;
    const std::string message = input_error_of([&] { check_layout(layout); });
    EXPECT_NE(message.find("query_bits must be at most 31"), std::string::npos) << message;
    layout.query_bits = 31;
    EXPECT_EQ(input_error_of([&] { check_layout(layout); }), "") << set;
  }
}

TEST(IndexPlace, DealsKeysOutToShardsInTurn) {
  for (const uint32_t shards : {1u, 3u, 1000u}) {
    std::set<std::pair<uint32_t, uint32_t>> places;
    for (uint64_t i = 0; i < 5000; ++i) {
      const IndexPlace place = index_place(i, PublicDivisor(shards));
      EXPECT_EQ(uint64_t{place.row} * shards + place.shard, i);
      EXPECT_LT(place.shard, shards);
      places.emplace(place.shard, place.row);
    }
    EXPECT_EQ(places.size(), 5000u);
  }
  EXPECT_EQ(index_place(kKeyCountMax - 1, PublicDivisor(65'536)).row, 65'535u);
  EXPECT_EQ(index_place(kKeyCountMax - 1, PublicDivisor(2)).row, (1u << 31) - 1);
}

}  // namespace
}  // namespace blindfuse
