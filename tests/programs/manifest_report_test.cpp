#include "host/commands/plan_report.h"

#include <gtest/gtest.h>

#include <string>

namespace blindfuse {
namespace {

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

TEST(ManifestReport, OptionsMakeTheLayout) {
  Layout layout = layout_with("lwe-1774");
  EXPECT_EQ(options_for(layout), "--mode hint --shards 5");
  EXPECT_EQ(options_for(layout_with("lwe-1288")), "--params lwe-1288 --shards 5");
  layout = layout_with("ring-2048");
  EXPECT_EQ(options_for(layout), "--mode packed --shards 5");
  layout.second = SecondLevel{};
  EXPECT_EQ(options_for(layout), "--mode packed --levels 2 --shards 5");
  layout.second->key_order = 64;
  EXPECT_EQ(options_for(layout), "--mode packed --levels 2 --short-key --shards 5");
}

TEST(ManifestReport, TellsSeveralKeysARequest) {
  Layout layout = layout_with("ring-2048");
  EXPECT_EQ(request_name(layout), "look-up");
  EXPECT_FALSE(layout_json(layout).contains("keys_per_request"));
  layout.shard_count = 32;
  layout.batch = BatchCode{16, 32};
  EXPECT_EQ(request_name(layout), "request for up to 16 keys");
  EXPECT_EQ(options_for(layout), "--mode packed --keys-per-request 16 --shards 32");
  const nlohmann::json json = layout_json(layout);
  EXPECT_EQ(json.at("keys_per_request"), 16);
  EXPECT_EQ(json.at("bucket_count"), 32);
  EXPECT_EQ(json.at("record_count"), 15'000);
  EXPECT_EQ(json.at("query_bytes"), 32 * 6656 + 24'576);
}

}  // namespace
}  // namespace blindfuse
