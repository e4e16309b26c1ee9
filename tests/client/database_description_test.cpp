#include "client/database_description.h"

#include <gtest/gtest.h>

#include <limits>

#include "src/base/errors.h"
#include "tests/client/fake_server.h"

namespace blindfuse {
namespace {

DatabaseDescription described(const char* name) {
  const ServedDatabase& served = ServedDatabase::from_vectors(name);
  return DatabaseDescription(served.manifest_text(), served.table());
}

TEST(DatabaseDescription, PlacesEveryKeyOfTheFrozenDatabase) {
  const nlohmann::json vectors = read_vectors("database_keyword.json");
  const DatabaseDescription database = described("database_keyword.json");
  for (const nlohmann::json& entry : vectors["entries"]) {
    const KeyPlace place = database.place(*decode_hex(entry["key"].get<std::string>()));
    EXPECT_EQ(place.shard, entry["shard"]);
    EXPECT_EQ(place.asks, 1u);
    EXPECT_EQ(nlohmann::json(std::vector(place.rows.begin(), place.rows.begin() + 3)),
              entry["rows"]);
    EXPECT_EQ(database.value_in(bytes_of_hex(entry["record"]), place),
              decode_hex(entry["value"].get<std::string>()));
  }
}

TEST(DatabaseDescription, PlacesNumbersOfAnIndexDatabase) {
  const DatabaseDescription database = described("database_index.json");  // 290 keys, 3 shards
  const KeyPlace place = database.place("152");
  EXPECT_EQ(place.shard, 2u);
  EXPECT_EQ(place.asks, 1u);
  EXPECT_EQ(place.rows[0], 50u);
  EXPECT_EQ(database.place(uint64_t{289}).asks, 1u);
  for (const char* beyond : {"290", "1000000000000", "18446744073709551616"}) {
    EXPECT_EQ(database.place(beyond).asks, 0u) << beyond;
    EXPECT_LT(database.place(beyond).shard, 3u) << beyond;
  }
  const std::vector<uint8_t> zeros(database.layout().record_bytes());
  EXPECT_EQ(database.value_in(zeros, database.place("290")), std::nullopt);
  EXPECT_EQ(database.value_in(zeros, place), "");
}

TEST(DatabaseDescription, RefusesATableThatIsNotTheManifests) {
  const ServedDatabase& served = ServedDatabase::from_vectors("database_keyword.json");
  Bytes table = served.table();
  table[5] ^= 1;
  EXPECT_THROW(DatabaseDescription(served.manifest_text(), table), InputError);
  table = served.table();
  table.pop_back();
  EXPECT_THROW(DatabaseDescription(served.manifest_text(), table), InputError);
  EXPECT_THROW(DatabaseDescription("{}", served.table()), InputError);
}

TEST(DatabaseDescription, KnowsThePacksOfPackedResponses) {
  // 9 shards of 500 columns.
  const ServedDatabase served = ServedDatabase::with_noise(9, 500, 0, "ring-2048", 18);
  const DatabaseDescription database(served.manifest_text(), served.table());
  EXPECT_EQ(served.table().size(), 9 * 112 + 5 * 64u);
  EXPECT_EQ(database.table().size(), 9u);
  ASSERT_EQ(database.epoch_table().packs.size(), 5u);
  for (uint32_t pack = 0; pack < 5; ++pack) {
    const Sha256Digest& hash = database.epoch_table().hint_hash(pack);
    EXPECT_EQ(Bytes(hash.begin(), hash.end()), reference_pir::sha256(served.hints()[pack]));
  }
  const Bytes shards_alone = reference_pir::slice(served.table(), 0, 9 * 112);
  EXPECT_THROW(DatabaseDescription(served.manifest_text(), shards_alone), InputError);
}

TEST(DatabaseDescription, RefusesKeysThatCannotBe) {
  const DatabaseDescription keyword = described("database_keyword.json");
  EXPECT_NO_THROW(keyword.place(std::string(65'536, 'x')));
  EXPECT_THROW(keyword.place(std::string(65'537, 'x')), InputError);
  EXPECT_THROW(keyword.place(uint64_t{1}), InputError);
  EXPECT_THROW(described("database_index.json").place("one"), InputError);
}

TEST(ParseIndex, IsStrict) {
  EXPECT_EQ(parse_index("0"), 0u);
  EXPECT_EQ(parse_index("4294967296"), 4'294'967'296u);
  EXPECT_EQ(parse_index("18446744073709551615"), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(parse_index("99999999999999999999999"), std::numeric_limits<uint64_t>::max());
  for (const char* wrong :
       {"", "-1", "+1", "01", "00", " 1", "1 ", "1.0", "0x1", "1e3", "\xd9\xa1"}) {
    EXPECT_THROW(parse_index(wrong), InputError) << wrong;
  }
}

}  // namespace
}  // namespace blindfuse
