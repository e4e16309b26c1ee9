// What a client sends and reads where packed responses have two levels, against
// tests/vectors/second_level.json, which another program made.
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

// Of s, of e, of the errors of each key's digits, and e2.
std::vector<std::string> secrets_in(const nlohmann::json& database) {
  std::vector<std::string> texts;
  texts.push_back(database.at("s").get<std::string>());
  texts.push_back(database.at("e").get<std::string>());
  for (const char* key : {"packing_key", "short_key"}) {
    if (!database.contains(key)) continue;
    for (const nlohmann::json& digit : database.at(key)) {
      texts.push_back(digit.at("e").get<std::string>());
    }
  }
  texts.push_back(database.at("e2").get<std::string>());
  return texts;
}

TEST(SecondLevelVectors, QueriesAndRecordsAreTheFrozenOnes) {
  const nlohmann::json vectors = read_vectors("second_level.json");
  for (const nlohmann::json& each : vectors.at("databases")) {
    SCOPED_TRACE(each.at("name"));
    const DatabaseDescription database(each.at("manifest").dump(),
                                       bytes_of_hex(vectors.at("table")));
    const Layout& layout = database.layout();
    const KeyPlace place = database.place(each.at("index").get<uint64_t>());
    EXPECT_EQ(place.shard, each.at("shard"));
    ASSERT_EQ(place.asks, 1u);
    EXPECT_EQ(place.rows[0], each.at("row"));

    auto prepared = prepare_queries_for(database.manifest(), 1, 1, scripted(secrets_in(each)));
    Bytes sent(layout.query_bytes());
    DecodingSecret secret = std::move(prepared.at(0)).encrypt({&place, 1}, layout, sent);
    EXPECT_EQ(Bytes(sent.begin(), sent.begin() + 64), bytes_of_hex(each.at("query_prefix")));
    EXPECT_EQ(Bytes(sent.end() - 64, sent.end()), bytes_of_hex(each.at("query_suffix")));
    EXPECT_EQ(reference_pir::sha256(sent), bytes_of_hex(each.at("query_sha256")));

    const Bytes response = bytes_of_hex(each.at("response"));
    EXPECT_EQ(response.size(), layout.response_bytes());
    const SecretBuffer<uint32_t> words = words_of_shard(layout, place.shard, response);
    const auto record = decode(std::move(secret), layout, place.shard, words.span(),
                               bytes_of_hex(vectors.at("lowered_mask")));
    EXPECT_EQ(record, bytes_of_hex(each.at("record")));
  }
}

// 60 words of 13 bits are 780 bits, and 98 bytes have 784: 4 bits are unused.
TEST(SecondLevelVectors, ResponsesWithUnusedBitsAreRefused) {
  const nlohmann::json vectors = read_vectors("second_level.json");
  for (const nlohmann::json& each : vectors.at("databases")) {
    const DatabaseDescription database(each.at("manifest").dump(),
                                       bytes_of_hex(vectors.at("table")));
    for (const int bit : {0x10, 0x80}) {
      Bytes response = bytes_of_hex(each.at("response"));
      response.back() = static_cast<uint8_t>(response.back() | bit);
      EXPECT_THROW(words_of_shard(database.layout(), 0, response), ProtocolError);
    }
    Bytes shorter = bytes_of_hex(each.at("response"));
    shorter.pop_back();
    EXPECT_THROW(words_of_shard(database.layout(), 0, shorter), ProtocolError);
  }
}

}  // namespace
}  // namespace blindfuse
