// What a client sends and reads where requests are for several keys, against
// tests/vectors/batch.json, which another program made.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
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

class BatchClientVectors : public ::testing::Test {
 protected:
  const nlohmann::json file_ = read_vectors("batch.json");
  const DatabaseDescription database_{file_.at("manifest").dump(), bytes_of_hex(file_.at("table"))};
  const Layout& layout_ = database_.layout();
};

TEST_F(BatchClientVectors, KeysAreInTheShardsOfTheirBuckets) {
  for (const nlohmann::json& asked : file_.at("asked")) {
    if (asked.at("key").is_null()) continue;
    SCOPED_TRACE(asked.at("key"));
    const KeyHash hash =
        key_hash(database_.manifest().salt, vectors::string_from_hex(asked.at("key")));
    const uint32_t bucket = asked.at("bucket");
    const BucketChoice buckets = BucketChooser(layout_.bucket_count())(hash);
    EXPECT_NE(std::find(buckets.begin(), buckets.end(), bucket), buckets.end());
    const uint32_t shard = shard_in_bucket(hash.shard_hash, bucket, layout_.bucket_shard_count());
    EXPECT_EQ(shard, asked.at("shard"));
    EXPECT_EQ(vectors::to_hex(hash.digest).substr(0, 2 * layout_.record.digest_bytes),
              asked.at("digest").get<std::string>());
  }
}

// All under one secret, of buckets with and without a key.
TEST_F(BatchClientVectors, RecordsOfAllBucketsAreTheFrozenOnes) {
  const std::vector<int> signs = vectors::ternary(file_.at("s"));
  const Bytes response = bytes_of_hex(file_.at("response"));
  EXPECT_EQ(response.size(), layout_.response_bytes());
  ASSERT_EQ(file_.at("asked").size(), layout_.bucket_count());
  for (const nlohmann::json& asked : file_.at("asked")) {
    SCOPED_TRACE(asked.at("bucket"));
    SecretBuffer<uint32_t> s(signs.size());
    for (size_t i = 0; i < signs.size(); ++i) s[i] = static_cast<uint32_t>(signs[i]);
    const uint32_t shard = asked.at("shard");
    const SecretBuffer<uint32_t> words = words_of_shard(layout_, shard, response);
    const auto record = decode(DecodingSecret(std::move(s)), layout_, shard, words.span(),
                               bytes_of_hex(file_.at("lowered_mask")));
    EXPECT_EQ(record, bytes_of_hex(asked.at("record")));
    if (asked.at("key").is_null()) continue;
    KeyPlace place;
    place.shard = shard;
    place.asks = 1;
    const Bytes digest = bytes_of_hex(asked.at("digest"));
    std::copy(digest.begin(), digest.end(), place.digest.begin());
    const std::optional<std::string> value = database_.value_in(record, place);
    ASSERT_EQ(value.has_value(), !asked.at("value").is_null());
    if (value) {
      EXPECT_EQ(*value, vectors::string_from_hex(asked.at("value")));
    }
  }
}

TEST_F(BatchClientVectors, TheQueryIsTheFrozenOne) {
  std::vector<std::string> texts = {file_.at("s").get<std::string>(),
                                    file_.at("e").get<std::string>()};
  for (const nlohmann::json& digit : file_.at("packing_key")) {
    texts.push_back(digit.at("e").get<std::string>());
  }
  std::vector<KeyPlace> buckets(layout_.bucket_count());
  for (const nlohmann::json& asked : file_.at("asked")) {
    const auto rows = asked.at("rows").get<std::vector<uint32_t>>();
    KeyPlace& bucket = buckets.at(asked.at("bucket").get<size_t>());
    std::copy(rows.begin(), rows.end(), bucket.rows.begin());
    bucket.asks = rows.empty() ? 0 : 1;
  }
  auto prepared = prepare_queries_for(database_.manifest(), 1, 1, scripted(texts));
  Bytes sent(layout_.query_bytes());
  std::move(prepared.at(0)).encrypt(buckets, layout_, sent).take();
  EXPECT_EQ(sent, bytes_of_hex(file_.at("query")));
}

TEST(BucketMatchingVectors, AsManyKeysHaveABucketAsCan) {
  const nlohmann::json file = read_vectors("buckets.json");
  for (const nlohmann::json& each : file.at("matchings")) {
    SCOPED_TRACE(each.dump());
    const auto keys = each.at("buckets").get<std::vector<BucketChoice>>();
    const SecretBuffer<uint32_t> buckets = match_buckets(keys, each.at("bucket_count"));
    const auto left_out = std::count(buckets.span().begin(), buckets.span().end(), kNoBucket);
    EXPECT_EQ(keys.size() - static_cast<size_t>(left_out), each.at("most").get<size_t>());
  }
}

}  // namespace
}  // namespace blindfuse
