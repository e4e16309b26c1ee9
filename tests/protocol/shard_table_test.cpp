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

TEST(ShardTable, AgreesWithTheDatabaseVectors) {
  for (const char* name : {"database_keyword.json", "database_index.json"}) {
    const json file = vectors::read_vectors(name);
    const std::vector<uint8_t> bytes = vectors::from_hex(file.at("table"));
    const json& shards = file.at("shards");
    const ShardTable table = parse_shard_table(bytes, static_cast<uint32_t>(shards.size()));
    for (size_t i = 0; i < shards.size(); ++i) {
      EXPECT_EQ(table[i].filter_seed, vectors::integer(shards[i].at("filter_seed")));
      EXPECT_EQ(table[i].key_count, shards[i].at("key_count"));
      EXPECT_EQ(nlohmann::json(vectors::to_hex(table[i].input)), shards[i].at("input_sha256"));
      EXPECT_EQ(nlohmann::json(vectors::to_hex(table[i].matrix)), shards[i].at("matrix_sha256"));
      EXPECT_EQ(nlohmann::json(vectors::to_hex(table[i].hint)), shards[i].at("hint_sha256"));
    }
    EXPECT_EQ(serialize_shard_table(table), bytes);
  }
}

TEST(ShardTable, RefusesEveryOtherLength) {
  const std::vector<uint8_t> bytes(4 * kShardEntryBytes);
  for (const size_t length :
       {size_t{0}, kShardEntryBytes - 1, kShardEntryBytes + 1, 2 * kShardEntryBytes - 1,
        2 * kShardEntryBytes + 1, 3 * kShardEntryBytes, 4 * kShardEntryBytes}) {
    const std::string message =
        support::input_error_of([&] { parse_shard_table(std::span(bytes).first(length), 2); });
    EXPECT_NE(message.find(std::to_string(length)), std::string::npos) << message;
    EXPECT_NE(message.find("224"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace blindfuse
