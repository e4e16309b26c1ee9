#include "src/layout.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/manifest.h"
#include "tests/support.h"
#include "tests/vectors.h"

namespace blindfuse {
namespace {

using support::bad_input_of;
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
  return layout;
}

void expect_derived(const Layout& layout, const json& derived) {
  ASSERT_NE(layout.lwe, nullptr);
  EXPECT_EQ(layout.lwe->dimension, derived.at("dimension"));
  EXPECT_EQ(layout.record_bytes(), derived.at("record_bytes"));
  EXPECT_EQ(layout.column_count(), derived.at("column_count"));
  EXPECT_EQ(layout.query_bytes(), derived.at("query_bytes"));
  EXPECT_EQ(layout.response_bytes(), derived.at("response_bytes"));
  EXPECT_EQ(layout.shard_hint_bytes(), derived.at("hint_bytes"));
  EXPECT_EQ(layout.hint_bytes(), layout.shard_hint_bytes() * layout.shard_count);
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

TEST(Layout, HandsOnItsFuseShapeAndNoise) {
  const json file = vectors::read_vectors("manifest.json");
  const Layout layout = layout_of(file.at("valid").at(0).at("manifest"));
  EXPECT_EQ(layout.fuse(), (FuseShape{3, 4096, 221'184}));
  const NoiseBudget expected = noise_budget(221'184, 1774, 1010, 28, 10, 18);
  EXPECT_EQ(layout.noise().log2_failure, expected.log2_failure);
  EXPECT_EQ(layout.noise().query_variance, expected.query_variance);
  EXPECT_EQ(layout.noise().hint_variance, expected.hint_variance);
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
        const std::string message = bad_input_of([&] { check_layout(layout); });
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
    const std::string message = bad_input_of([&] { check_layout(layout); });
    EXPECT_EQ(message.empty(), is_good) << message;
    if (!is_good) {
      EXPECT_NE(message.find("key_count"), std::string::npos) << message;
    }
  }
}

TEST(CheckLayout, TakesRecordFormatsThatTheProtocolAllows) {
  const auto message_of = [](Layout layout, RecordFormat record) {
    layout.record = record;
    return bad_input_of([&] { check_layout(layout); });
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
    EXPECT_EQ(bad_input_of([&] { check_layout(layout); }), "");
  }
  for (const uint64_t count : {uint64_t{3 * 768 + 1}, kKeyCountMax}) {
    layout.key_count = count;
    EXPECT_NE(bad_input_of([&] { check_layout(layout); }).find("key_count"), std::string::npos);
  }
}

TEST(CheckLayout, WantsAnIndexWithoutAFilter) {
  Layout layout = good_index();
  layout.arity = 3;
  EXPECT_NE(bad_input_of([&] { check_layout(layout); }).find("arity"), std::string::npos);
  layout = good_index();
  layout.segment_length = 64;
  EXPECT_NE(bad_input_of([&] { check_layout(layout); }).find("segment_length"), std::string::npos);
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
  EXPECT_EQ(bad_input_of([&] { check_layout(layout); }), "");
  layout.query_bits = 27;
  const std::string message = bad_input_of([&] { check_layout(layout); });
  for (const char* part :
       {"2^-40", "1179648 rows", "query_bits 27", "response_bits 10", "hint_bits 18"}) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

TEST(IndexPlace, DealsKeysOutToShardsInTurn) {
  for (const uint32_t shards : {1u, 3u, 1000u}) {
    std::set<std::pair<uint32_t, uint32_t>> places;
    for (uint64_t i = 0; i < 5000; ++i) {
      const IndexPlace place = index_place(i, shards);
      EXPECT_EQ(uint64_t{place.row} * shards + place.shard, i);
      EXPECT_LT(place.shard, shards);
      places.emplace(place.shard, place.row);
    }
    EXPECT_EQ(places.size(), 5000u);
  }
  EXPECT_EQ(index_place(kKeyCountMax - 1, 65'536).row, 65'535u);
  EXPECT_EQ(index_place(kKeyCountMax - 1, 2).row, (1u << 31) - 1);
}

}  // namespace
}  // namespace blindfuse
