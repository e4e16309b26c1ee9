#include "src/arithmetic/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
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
  const uint64_t packs = (layout.column_count() + 1023) / 1024;
  const bool is_packed = layout.lwe->mode == Mode::kPacked;
  EXPECT_EQ(layout.hint_bytes(),
            layout.hint_part_bytes() * (is_packed ? packs : layout.shard_count));
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

// 5 shards of 600 columns: C = 3000, three packs.
Layout good_packed() {
  Layout layout;
  layout.key_count = 1000;
  layout.shard_count = 5;
  layout.row_count = 4096;
  layout.segment_length = 256;
  layout.record = {8, 2, 590};
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
  EXPECT_EQ(layout.pack_count(), 3u);
  EXPECT_EQ(layout.query_words_bytes(), 13'312u);     // 4096 * 26 / 8
  EXPECT_EQ(layout.query_bytes(), 13'312u + 24'576);  // three times 2048 words after them
  EXPECT_EQ(layout.response_bytes(), 4'125u);         // 3000 * 11 / 8
  EXPECT_EQ(layout.hint_part_count(), 3u);
  EXPECT_EQ(layout.hint_part_words(), 2'048u);
  EXPECT_EQ(layout.hint_part_bytes(), 4'608u);  // 2048 * 18 / 8
  EXPECT_EQ(layout.hint_bytes(), 13'824u);
  EXPECT_EQ(layout.shard_matrix_bytes(), 4'096u * 600);
  const NoiseBudget noise = layout.noise();
  // As in noise_budget_test.cpp: with 22962416298.67 of the query and 30541989888 of the mask
  // 7340032^2 / (2 * 87067786035.20) = 309.391522481, which is 446.357615177 ln 2.
  EXPECT_NEAR(noise.packing_variance, 1.1 * 274'609'471'488.0 / 9, 1);
  EXPECT_NEAR(noise.log2_failure, -436.12879648645134, 1e-9);
}

TEST(PackedLayout, IsNoOtherInTheModeOfHints) {
  Layout layout = good_packed();
  layout.lwe = find_lwe_params("lwe-1288");
  EXPECT_EQ(layout.mode(), Mode::kHint);
  EXPECT_EQ(layout.pack_count(), 0u);
  EXPECT_EQ(layout.query_bytes(), 13'312u);
  EXPECT_EQ(layout.query_words_bytes(), 13'312u);
  EXPECT_EQ(layout.hint_part_count(), 5u);
  EXPECT_EQ(layout.hint_part_words(), 600u * 1288);
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
      // Two shards fill a pack, and 128 do: none lies in two.
      {5, 512, 3, {{0, {0, 0}}, {1, {0, 0}}, {2, {1, 1}}, {3, {1, 1}}, {4, {2, 2}}}},
      {1000, 8, 8, {{0, {0, 0}}, {127, {0, 0}}, {128, {1, 1}}, {999, {7, 7}}}},
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
