// What a client sends and reads where responses are packed, against tests/vectors/packed.json,
// which another program made.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "client/database_description.h"
#include "client/decoder.h"
#include "client/ring_query.h"
#include "tests/client/fake_server.h"
#include "tests/client/scripted_random.h"

namespace blindfuse {
namespace {

// Of s, of e, and of the errors of the packing key's digits.
std::vector<std::string> secrets_of(const nlohmann::json& query) {
  std::vector<std::string> texts;
  texts.push_back(query.at("s").get<std::string>());
  texts.push_back(query.at("e").get<std::string>());
  for (const nlohmann::json& digit : query.at("packing_key")) {
    texts.push_back(digit.at("e").get<std::string>());
  }
  return texts;
}

TEST(PackedVectors, QueriesAndRecordsAreTheFrozenOnes) {
  const nlohmann::json vectors = read_vectors("packed.json");
  const DatabaseDescription database(vectors.at("manifest").dump(),
                                     bytes_of_hex(vectors.at("table")));
  const Layout& layout = database.layout();
  for (const nlohmann::json& query : vectors.at("queries")) {
    SCOPED_TRACE(query.at("name"));
    const KeyPlace place = database.place(*decode_hex(query.at("key").get<std::string>()));
    EXPECT_EQ(place.shard, query.at("shard"));
    EXPECT_EQ(nlohmann::json(
                  std::vector(place.rows.begin(), place.rows.begin() + place.asks * layout.arity)),
              query.at("rows"));

    auto prepared = prepare_queries_for(database.manifest(), 1, 1, scripted(secrets_of(query)));
    Bytes sent(layout.query_bytes());
    DecodingSecret secret = std::move(prepared.at(0)).encrypt({&place, 1}, layout, sent);
    EXPECT_EQ(Bytes(sent.begin(), sent.begin() + 64), bytes_of_hex(query.at("query_prefix")));
    EXPECT_EQ(Bytes(sent.end() - 64, sent.end()), bytes_of_hex(query.at("query_suffix")));
    EXPECT_EQ(reference_pir::sha256(sent), bytes_of_hex(query.at("query_sha256")));

    Bytes hint;
    const HintParts parts = layout.hint_parts_of(place.shard);
    for (uint32_t pack = parts.first; pack <= parts.last; ++pack) {
      const Bytes mask = bytes_of_hex(vectors.at("packs").at(pack).at("mask"));
      hint.insert(hint.end(), mask.begin(), mask.end());
    }
    const SecretBuffer<uint32_t> words =
        words_of_shard(layout, place.shard, bytes_of_hex(query.at("response")));
    const auto record = decode(std::move(secret), layout, place.shard, words.span(), hint);
    EXPECT_EQ(record, bytes_of_hex(query.at("record")));
    const std::optional<std::string> value = database.value_in(record, place);
    ASSERT_EQ(value.has_value(), !query.at("value").is_null());
    if (value) {
      EXPECT_EQ(*value, decode_hex(query.at("value").get<std::string>()));
    }
  }
}

}  // namespace
}  // namespace blindfuse
