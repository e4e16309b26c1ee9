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

// Checked, as parse_manifest() does it.
Layout layout_of(const json& manifest) { return parse_manifest(manifest.dump()).manifest.layout; }

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
}

TEST(Layout, HasTheSizesOfTheVectors) {
  const json file = vectors::read_vectors("manifest.json");
  for (const json& c : file.at("valid")) {
    SCOPED_TRACE(c.at("name"));
    expect_derived(layout_of(c.at("manifest")), c.at("derived"));
  }
  for (const char* name : {"database_keyword.json", "database_index.json"}) {
    const json database = vectors::read_vectors(name);
    expect_derived(layout_of(database.at("manifest")), database.at("derived"));
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
  for (const auto& [keys, buckets] : {std::pair(2u, 12u),
                                      {12u, 32u},
                                      {16u, 32u},
                                      {17u, 34u},
                                      {48u, 96u},
                                      {64u, 96u},
                                      {65u, 98u},
                                      {1024u, 1536u}}) {
    EXPECT_EQ(usual_bucket_count(keys), buckets);
  }
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

// 5 shards of 300 columns: C = 1500, two packs. The vectors have the sizes of such layouts.
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
       {1u, 7u, 9u, 32u, 600u, 1023u, 1024u, 1025u, 1201u, 2048u, 2049u, 4201u, 131'080u}) {
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

// What is out of range is refused by the vectors of manifests (manifest_test.cpp).
TEST(CheckLayout, TakesEachNumberToItsEnds) {
  const std::vector<std::pair<uint32_t Layout::*, std::vector<uint32_t>>> ranges = {
      {&Layout::shard_count, {1, 65'536}},
      {&Layout::row_count, {192, 256, 1u << 20}},
      {&Layout::arity, {3, 4}},
      {&Layout::segment_length, {64, 128, 256}},
      {&Layout::query_bits, {24, 32}},
      {&Layout::response_bits, {9, 32}},
      {&Layout::hint_bits, {16, 32}},
  };
  for (const auto& [number, values] : ranges) {
    for (const uint32_t value : values) {
      Layout layout = good_keyword();
      layout.*number = value;
      EXPECT_EQ(input_error_of([&] { check_layout(layout); }), "") << value;
    }
  }
  const std::vector<std::pair<uint32_t SecondLevel::*, std::vector<uint32_t>>> second_ranges = {
      {&SecondLevel::group_shards, {1, 3}},
      {&SecondLevel::query_bits, {25, 32}},
      {&SecondLevel::mask_bits, {19, 32}},
      {&SecondLevel::response_bits, {13, 32}},
  };
  for (const auto& [number, values] : second_ranges) {
    for (const uint32_t value : values) {
      Layout layout = good_two_levels();
      (*layout.second).*number = value;
      EXPECT_EQ(input_error_of([&] { check_layout(layout); }), "") << value;
    }
  }
  for (const uint32_t rows : {2048u, 3u * 2048, 1u << 24}) {
    Layout layout = good_packed();
    layout.row_count = rows;
    layout.segment_length = 64;
    layout.query_bits = layout.response_bits = layout.hint_bits = 32;
    EXPECT_EQ(input_error_of([&] { check_layout(layout); }), "") << rows;
  }
  Layout index = good_index();
  index.shard_count = 3;
  for (const uint64_t count : {1u, 3u * 768u}) {
    index.key_count = count;
    EXPECT_EQ(input_error_of([&] { check_layout(index); }), "") << count;
  }
  for (const RecordFormat& record :
       {RecordFormat{1, 0, 0}, {16, 4, 131'072}, {8, 1, 255}, {8, 2, 65'535}, {8, 0, 131'072}}) {
    Layout most = good_keyword();
    most.key_count = kKeyCountMax;
    most.record = record;
    EXPECT_EQ(input_error_of([&] { check_layout(most); }), "") << record.value_bytes;
  }
}

TEST(CheckLayout, TakesSegmentsOfAtMost2To18Rows) {
  Layout layout = good_keyword();
  layout.query_bits = layout.response_bits = layout.hint_bits = 32;
  layout.row_count = 3u << 19;
  layout.segment_length = 1u << 18;
  EXPECT_EQ(input_error_of([&] { check_layout(layout); }), "");
  layout.segment_length = 1u << 19;
  const std::string message = input_error_of([&] { check_layout(layout); });
  EXPECT_NE(message.find("segment_length"), std::string::npos) << message;
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
  for (uint64_t i = 0; i < 100; ++i) {
    const IndexPlace place = index_place(i, PublicDivisor(7));
    EXPECT_EQ(place.shard, i % 7);
    EXPECT_EQ(place.row, i / 7);
  }
  EXPECT_EQ(index_place(kKeyCountMax - 1, PublicDivisor(65'536)).row, 65'535u);
  EXPECT_EQ(index_place(kKeyCountMax - 1, PublicDivisor(2)).row, (1u << 31) - 1);
}

}  // namespace
}  // namespace blindfuse
