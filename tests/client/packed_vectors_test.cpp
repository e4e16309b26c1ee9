// What a client sends and reads where responses are packed, against tests/vectors, which another
// program made.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "client/batch_plan.h"
#include "client/database_description.h"
#include "client/decoder.h"
#include "client/ring_query.h"
#include "src/arithmetic/record.h"
#include "src/protocol/key_hash.h"
#include "tests/client/fake_server.h"
#include "tests/client/scripted_random.h"
#include "tests/vectors.h"

namespace blindfuse {
namespace {

using nlohmann::json;

DatabaseDescription described(const json& manifest, const json& table) {
  return DatabaseDescription(manifest.dump(), bytes_of_hex(table));
}

PreparedQuery prepared_query(const Manifest& manifest, const json& secrets) {
  std::vector<std::string> texts = {secrets.at("s"), secrets.at("e")};
  for (const char* key : {"packing_key", "short_key"}) {
    if (!secrets.contains(key)) continue;
    for (const json& digit : secrets.at(key)) texts.push_back(digit.at("e"));
  }
  if (secrets.contains("e2")) texts.push_back(secrets.at("e2"));
  return std::move(prepare_queries_for(manifest, 1, 1, scripted(texts)).at(0));
}

// Checks what is sent, and decodes the response of the example with this hint.
Bytes record_of(const DatabaseDescription& database, const KeyPlace& place, const json& query,
                const Bytes& hint) {
  const Layout& layout = database.layout();
  EXPECT_EQ(place.shard, query.at("shard"));
  Bytes sent(layout.query_bytes());
  DecodingSecret secret =
      prepared_query(database.manifest(), query).encrypt({&place, 1}, layout, sent);
  EXPECT_EQ(Bytes(sent.begin(), sent.begin() + 64), bytes_of_hex(query.at("query_prefix")));
  EXPECT_EQ(Bytes(sent.end() - 64, sent.end()), bytes_of_hex(query.at("query_suffix")));
  EXPECT_EQ(reference_pir::sha256(sent), bytes_of_hex(query.at("query_sha256")));
  const Bytes response = bytes_of_hex(query.at("response"));
  EXPECT_EQ(response.size(), layout.response_bytes());
  const SecretBuffer<uint32_t> words = words_of_shard(layout, place.shard, response);
  const Bytes record = decode(std::move(secret), layout, place.shard, words.span(), hint);
  EXPECT_EQ(record, bytes_of_hex(query.at("record")));
  return record;
}

void expect_value(const std::optional<std::string>& value, const json& expected) {
  ASSERT_EQ(value.has_value(), !expected.is_null());
  if (value) {
    EXPECT_EQ(*value, vectors::string_from_hex(expected));
  }
}

TEST(PackedVectors, QueriesAndRecordsAreTheFrozenOnes) {
  const json file = read_vectors("packed.json");
  const DatabaseDescription database = described(file.at("manifest"), file.at("table"));
  const Layout& layout = database.layout();
  for (const json& query : file.at("queries")) {
    SCOPED_TRACE(query.at("name"));
    const KeyPlace place = database.place(vectors::string_from_hex(query.at("key")));
    EXPECT_EQ(json(std::vector(place.rows.begin(), place.rows.begin() + place.asks * layout.arity)),
              query.at("rows"));
    Bytes hint;
    const HintParts parts = layout.hint_parts_of(place.shard);
    for (uint32_t pack = parts.first; pack <= parts.last; ++pack) {
      const Bytes mask = bytes_of_hex(file.at("packs").at(pack).at("mask"));
      hint.insert(hint.end(), mask.begin(), mask.end());
    }
    expect_value(database.value_in(record_of(database, place, query, hint), place),
                 query.at("value"));
  }
}

TEST(SecondLevelVectors, QueriesAndRecordsAreTheFrozenOnes) {
  const json file = read_vectors("second_level.json");
  for (const json& each : file.at("databases")) {
    SCOPED_TRACE(each.at("name"));
    const DatabaseDescription database = described(each.at("manifest"), file.at("table"));
    const KeyPlace place = database.place(each.at("index").get<uint64_t>());
    ASSERT_EQ(place.asks, 1u);
    EXPECT_EQ(place.rows[0], each.at("row"));
    record_of(database, place, each, bytes_of_hex(file.at("lowered_mask")));

    // 60 words of 13 bits are 780 bits, and 98 bytes have 784: 4 bits are unused.
    Bytes response = bytes_of_hex(each.at("response"));
    for (const int bit : {0x10, 0x80}) {
      Bytes wrong = response;
      wrong.back() = static_cast<uint8_t>(wrong.back() | bit);
      EXPECT_THROW(words_of_shard(database.layout(), 0, wrong), ProtocolError);
    }
    response.pop_back();
    EXPECT_THROW(words_of_shard(database.layout(), 0, response), ProtocolError);
  }
}

class BatchClientVectors : public ::testing::Test {
 protected:
  const json file_ = read_vectors("batch.json");
  const DatabaseDescription database_ = described(file_.at("manifest"), file_.at("table"));
  const Layout& layout_ = database_.layout();
};

// All under one secret, of buckets with and without a key.
TEST_F(BatchClientVectors, RecordsOfAllBucketsAreTheFrozenOnes) {
  const std::vector<int> signs = vectors::ternary(file_.at("s"));
  const Bytes response = bytes_of_hex(file_.at("response"));
  EXPECT_EQ(response.size(), layout_.response_bytes());
  ASSERT_EQ(file_.at("asked").size(), layout_.bucket_count());
  for (const json& asked : file_.at("asked")) {
    SCOPED_TRACE(asked.at("bucket"));
    SecretBuffer<uint32_t> s(signs.size());
    for (size_t i = 0; i < signs.size(); ++i) s[i] = static_cast<uint32_t>(signs[i]);
    const uint32_t shard = asked.at("shard");
    const SecretBuffer<uint32_t> words = words_of_shard(layout_, shard, response);
    const auto record = decode(DecodingSecret(std::move(s)), layout_, shard, words.span(),
                               bytes_of_hex(file_.at("lowered_mask")));
    EXPECT_EQ(record, bytes_of_hex(asked.at("record")));
    if (asked.at("key").is_null()) continue;
    const KeyHash hash = database_.hash(vectors::string_from_hex(asked.at("key")));
    const uint32_t bucket = asked.at("bucket");
    const BucketChoice buckets = BucketChooser(layout_.bucket_count())(hash);
    EXPECT_NE(std::find(buckets.begin(), buckets.end(), bucket), buckets.end());
    const KeyPlace place = database_.place(hash, bucket);
    EXPECT_EQ(place.shard, shard);
    EXPECT_EQ(vectors::to_hex(hash.digest).substr(0, 2 * layout_.record.digest_bytes),
              asked.at("digest").get<std::string>());
    expect_value(database_.value_in(record, place), asked.at("value"));
  }
}

TEST_F(BatchClientVectors, TheQueryIsTheFrozenOne) {
  std::vector<KeyPlace> buckets(layout_.bucket_count());
  for (const json& asked : file_.at("asked")) {
    const auto rows = asked.at("rows").get<std::vector<uint32_t>>();
    KeyPlace& bucket = buckets.at(asked.at("bucket").get<size_t>());
    std::copy(rows.begin(), rows.end(), bucket.rows.begin());
    bucket.asks = rows.empty() ? 0 : 1;
  }
  Bytes sent(layout_.query_bytes());
  prepared_query(database_.manifest(), file_).encrypt(buckets, layout_, sent).take();
  EXPECT_EQ(sent, bytes_of_hex(file_.at("query")));
}

TEST(BucketMatchingVectors, AsManyKeysHaveABucketAsCan) {
  const json file = read_vectors("buckets.json");
  for (const json& each : file.at("matchings")) {
    SCOPED_TRACE(each.dump());
    const auto keys = each.at("buckets").get<std::vector<BucketChoice>>();
    const SecretBuffer<uint32_t> buckets = match_buckets(keys, each.at("bucket_count"));
    const auto left_out = std::count(buckets.span().begin(), buckets.span().end(), kNoBucket);
    EXPECT_EQ(keys.size() - static_cast<size_t>(left_out), each.at("most").get<size_t>());
  }
}

}  // namespace
}  // namespace blindfuse
