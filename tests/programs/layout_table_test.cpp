#include "host/commands/layout_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/publish/known_rates.h"

namespace blindfuse {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Five packs, the last of 904 columns.
Layout layout_with(const char* set) {
  Layout layout;
  layout.key_count = 5000;
  layout.shard_count = 5;
  layout.row_count = 2048;
  layout.segment_length = 256;
  layout.record = {8, 0, 992};
  layout.lwe = find_lwe_params(set);
  layout.query_bits = 26;
  layout.response_bits = 12;
  layout.hint_bits = 20;
  return layout;
}

TEST(LayoutTable, JsonTellsTheModes) {
  const nlohmann::json hint = layout_json(layout_with("lwe-1774"));
  EXPECT_EQ(hint.at("mode"), "hint");
  EXPECT_EQ(hint.at("pack_count"), 0);
  EXPECT_EQ(hint.at("packing_table_bytes"), 0);
  EXPECT_EQ(hint.at("query_bytes"), 6656);
  EXPECT_EQ(hint.at("hint_bytes"), 1774 * 5000 * 20 / 8);
  const nlohmann::json packed = layout_json(layout_with("ring-2048"));
  EXPECT_EQ(packed.at("mode"), "packed");
  EXPECT_EQ(packed.at("pack_count"), 5);
  EXPECT_EQ(packed.at("packing_table_bytes"), 5 * 1023 * 3 * 2048 * 4);
  EXPECT_EQ(packed.at("query_bytes"), 6656 + 24'576);
  EXPECT_EQ(packed.at("hint_bytes"), 5 * 2048 * 20 / 8);
}

TEST(LayoutTable, ATableIsOfOneMode) {
  const std::vector<Plan> hint = {{layout_with("lwe-1774"), 1, 2}};
  const std::string hint_table = plan_table(hint, hint[0], 5);
  EXPECT_THAT(hint_table, HasSubstr("      hint     matrix  log2 fail"));
  EXPECT_THAT(hint_table, Not(HasSubstr("packing")));
  const std::vector<Plan> packed = {{layout_with("ring-2048"), 1, 2}};
  const std::string packed_table = plan_table(packed, packed[0], 5);
  EXPECT_THAT(packed_table, HasSubstr("     masks     matrix    packing  log2 fail"));
  EXPECT_THAT(packed_table, HasSubstr("   25.6 kB    10.2 MB   125.7 MB "));
  for (const std::string& table : {hint_table, packed_table}) {
    // Heading and row end at the same place.
    ASSERT_EQ(std::ranges::count(table, '\n'), 2) << table;
    EXPECT_EQ(2 * (table.find('\n') + 1), table.size()) << table;
    EXPECT_THAT(table, HasSubstr("\n*      5       2048     26/12/20"));
  }
}

TEST(LayoutTable, OptionsMakeTheLayout) {
  Layout layout = layout_with("lwe-1774");
  EXPECT_EQ(options_for(layout), "--mode hint --shards 5");
  EXPECT_EQ(kind_name(kind_of(layout)), "hint");
  EXPECT_EQ(options_for(layout_with("lwe-1288")), "--params lwe-1288 --shards 5");
  layout = layout_with("ring-2048");
  EXPECT_EQ(options_for(layout), "--mode packed --levels 1 --shards 5");
  EXPECT_EQ(kind_name(kind_of(layout)), "packed");
  layout.second = SecondLevel{};
  EXPECT_EQ(options_for(layout), "--mode packed --levels 2 --shards 5");
  EXPECT_EQ(kind_name(kind_of(layout)), "packed, 2 levels");
  layout.second->key_order = 64;
  EXPECT_EQ(options_for(layout), "--mode packed --levels 2 --short-key --shards 5");
  EXPECT_EQ(kind_name(kind_of(layout)), "packed, 2 levels, short key");
}

TEST(LayoutTable, TellsSeveralKeysARequest) {
  Layout layout = layout_with("ring-2048");
  EXPECT_EQ(request_name(layout), "look-up");
  EXPECT_FALSE(layout_json(layout).contains("keys_per_request"));
  layout.shard_count = 32;
  layout.batch = BatchCode{16, 32};
  EXPECT_EQ(request_name(layout), "request for up to 16 keys");
  EXPECT_EQ(options_for(layout), "--mode packed --keys-per-request 16 --shards 32");
  EXPECT_EQ(kind_name(kind_of(layout)), "packed, 16 keys a request");
  const nlohmann::json json = layout_json(layout);
  EXPECT_EQ(json.at("keys_per_request"), 16);
  EXPECT_EQ(json.at("bucket_count"), 32);
  EXPECT_EQ(json.at("record_count"), 15'000);
  EXPECT_EQ(json.at("query_bytes"), 32 * 6656 + 24'576);
}

// Matrix: 2048 * 5000 = 10.24 MB, 1.024 ms alone and 0.128 ms in batches. Masks: 25,600 bytes.
// Tables: 125.7 MB, 15.713 ms alone and 7.857 ms in batches.
TEST(LayoutTable, ComparesKindsWithEachOther) {
  const std::vector<Plan> plans = {{layout_with("lwe-1774"), 1, 2'000'000},
                                   {layout_with("ring-2048"), 1, 1'000'000}};
  const std::string table = comparison_table(plans, support::known_rates(), 1);
  ASSERT_EQ(std::ranges::count(table, '\n'), 3) << table;
  EXPECT_THAT(table, HasSubstr("  layout                      "));
  EXPECT_THAT(table, HasSubstr("\n* hint                        "));
  EXPECT_THAT(table, HasSubstr("\n  packed                      "));
  EXPECT_THAT(table, HasSubstr("       1.0    7812.5    180.00  --mode hint --shards 5\n"));
  EXPECT_THAT(table, HasSubstr("      16.7     125.2     90.09  --mode packed --levels 1"));
}

}  // namespace
}  // namespace blindfuse
