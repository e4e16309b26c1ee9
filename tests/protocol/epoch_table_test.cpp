#include "src/protocol/epoch_table.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "tests/support.h"
#include "tests/vectors.h"

namespace blindfuse {
namespace {

using vectors::array_from_hex;
using vectors::json;

ShardTable table_of(const json& entries) {
  ShardTable table;
  for (const json& c : entries) {
    table.push_back({vectors::integer(c.at("seed")), c.at("key_count"),
                     array_from_hex<32>(c.at("input")), array_from_hex<32>(c.at("matrix")),
                     array_from_hex<32>(c.at("hint"))});
  }
  return table;
}

TEST(ShardTable, AgreesWithTheVectors) {
  const json file = vectors::read_vectors("shard_table.json");
  const ShardTable table = table_of(file.at("entries"));
  const std::vector<uint8_t> bytes = serialize_shard_table(table);
  EXPECT_EQ(bytes.size(), table.size() * kShardEntryBytes);
  EXPECT_EQ(nlohmann::json(vectors::to_hex(bytes)), file.at("table"));
  EXPECT_EQ(nlohmann::json(vectors::to_hex(sha256(bytes))), file.at("sha256"));
  EXPECT_EQ(parse_shard_table(vectors::from_hex(file.at("table")), 2), table);
}

// first, first + 1, ...: no two of a table are alike.
Sha256Digest digest(uint8_t first) {
  Sha256Digest made;
  for (uint8_t& byte : made) byte = first++;
  return made;
}

void append_digest(std::vector<uint8_t>& bytes, uint8_t first) {
  for (int i = 0; i < 32; ++i) bytes.push_back(static_cast<uint8_t>(first + i));
}

Layout layout_of(const char* set, uint32_t shard_count, uint32_t value_bytes) {
  Layout layout;
  layout.shard_count = shard_count;
  layout.row_count = 2048;
  layout.segment_length = 64;
  layout.record = {.digest_bytes = 8, .length_bytes = 0, .value_bytes = value_bytes};
  layout.lwe = find_lwe_params(set);
  return layout;
}

// 2 * 750 columns, so two packs.
const Layout kPacked = layout_of("ring-2048", 2, 742);
const Layout kHint = layout_of("lwe-1774", 2, 742);

EpochTable packed_table() {
  return {
      {{0x8877665544332211, 5, digest(1), digest(10), {}}, {9, 0x201, digest(20), digest(30), {}}},
      {{digest(40), digest(50)}, {digest(60), digest(70)}}};
}

// As docs/PROTOCOL.md, section 3, has it.
std::vector<uint8_t> packed_bytes_by_hand() {
  std::vector<uint8_t> bytes = {0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,  // filter seed
                                5,    0,    0,    0,    0,    0,    0,    0};    // keys
  append_digest(bytes, 1);
  append_digest(bytes, 10);
  bytes.resize(112);  // no hint
  const std::vector<uint8_t> second = {9, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0};
  bytes.insert(bytes.end(), second.begin(), second.end());
  append_digest(bytes, 20);
  append_digest(bytes, 30);
  bytes.resize(224);
  for (uint8_t first = 40; first <= 70; first = static_cast<uint8_t>(first + 10)) {
    append_digest(bytes, first);
  }
  return bytes;
}

TEST(EpochTable, HasThePacksBehindTheShards) {
  const std::vector<uint8_t> bytes = packed_bytes_by_hand();
  ASSERT_EQ(bytes.size(), 352u);
  EXPECT_EQ(serialize_epoch_table(packed_table()), bytes);
  EXPECT_EQ(parse_epoch_table(bytes, kPacked), packed_table());
  EXPECT_EQ(epoch_table_bytes(kPacked), 352u);
}

TEST(EpochTable, IsThatOfTheShardsWhereThereAreNoPacks) {
  EpochTable table = packed_table();
  table.packs.clear();
  table.shards[1].hint = digest(80);
  std::vector<uint8_t> bytes = packed_bytes_by_hand();
  bytes.resize(192);
  append_digest(bytes, 80);
  EXPECT_EQ(serialize_epoch_table(table), bytes);
  EXPECT_EQ(parse_epoch_table(bytes, kHint), table);
  EXPECT_EQ(epoch_table_bytes(kHint), 224u);
}

TEST(EpochTable, RefusesEveryOtherLength) {
  const std::vector<uint8_t> bytes(600);
  for (const Layout* layout : {&kPacked, &kHint}) {
    const size_t right = layout == &kPacked ? 352 : 224;
    for (size_t length = 0; length <= bytes.size(); ++length) {
      const std::string message = support::input_error_of(
          [&] { parse_epoch_table(std::span(bytes).first(length), *layout); });
      ASSERT_EQ(message.empty(), length == right) << length;
      if (length == right) continue;
      ASSERT_NE(message.find(std::to_string(length)), std::string::npos) << message;
      ASSERT_NE(message.find(std::to_string(right)), std::string::npos) << message;
    }
  }
}

TEST(EpochTable, KnowsThePartsOfTheHint) {
  EpochTable table = packed_table();
  EXPECT_EQ(table.hint_hash(0), digest(50));
  EXPECT_EQ(table.hint_hash(1), digest(70));
  table.packs.clear();
  table.shards[0].hint = digest(80);
  table.shards[1].hint = digest(90);
  EXPECT_EQ(table.hint_hash(0), digest(80));
  EXPECT_EQ(table.hint_hash(1), digest(90));
}

TEST(EpochTable, HasItsBytesWithoutOverflow) {
  EXPECT_EQ(epoch_table_bytes(layout_of("ring-2048", 1, 0)), 112u + 64);
  EXPECT_EQ(epoch_table_bytes(layout_of("ring-2048", 1, 1016)), 112u + 64);
  EXPECT_EQ(epoch_table_bytes(layout_of("ring-2048", 1, 1017)), 112u + 2 * 64);
  EXPECT_EQ(epoch_table_bytes(layout_of("lwe-1288", 65'536, 131'072)), 7'340'032u);
  // 65,536 * 131,080 columns are 8,389,120 packs.
  EXPECT_EQ(epoch_table_bytes(layout_of("ring-2048", 65'536, 131'072)),
            uint64_t{7'340'032} + uint64_t{8'389'120} * 64);
}

}  // namespace
}  // namespace blindfuse
