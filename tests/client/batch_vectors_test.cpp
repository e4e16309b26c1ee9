// What a client sends and reads where requests are for several keys, against
// tests/vectors/batch.json, which another program made.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "client/database_description.h"
#include "client/decoder.h"
#include "client/ring_query.h"
#include "src/arithmetic/record.h"
#include "src/protocol/bucket_choice.h"
#include "src/protocol/public_polynomials.h"
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
    place.row_count = 3;
    const Bytes digest = bytes_of_hex(asked.at("digest"));
    std::copy(digest.begin(), digest.end(), place.digest.begin());
    const std::optional<std::string> value = database_.value_in(record, place);
    ASSERT_EQ(value.has_value(), !asked.at("value").is_null());
    if (value) {
      EXPECT_EQ(*value, vectors::string_from_hex(asked.at("value")));
    }
  }
}

// The first bucket has the public polynomials of a database without buckets, so that its words and
// the packing key are those of a query for its key alone.
TEST_F(BatchClientVectors, TheFirstBucketIsAskedAsADatabaseOfItsOwn) {
  const uint32_t rows = layout_.row_count;
  std::vector<std::string> texts = {file_.at("s").get<std::string>(),
                                    file_.at("e").get<std::string>().substr(0, rows)};
  for (const nlohmann::json& digit : file_.at("packing_key")) {
    texts.push_back(digit.at("e").get<std::string>());
  }
  PreparedQuery prepared =
      prepare_ring_query(ring::PublicPolynomials(database_.manifest().seed), rows, scripted(texts));
  const Bytes query = bytes_of_hex(file_.at("query"));
  ASSERT_EQ(query.size(), layout_.query_bytes());
  const size_t words_bytes = rows * layout_.query_bits / 8;
  const size_t key_bytes = query.size() - layout_.query_words_bytes();
  Bytes sent(words_bytes + key_bytes);
  const auto asked = file_.at("asked").at(0).at("rows").get<std::vector<uint32_t>>();
  std::move(prepared).encrypt(asked, layout_.query_bits, sent).take();
  EXPECT_TRUE(
      std::equal(sent.begin(), sent.begin() + static_cast<long>(words_bytes), query.begin()));
  EXPECT_TRUE(std::equal(sent.end() - static_cast<long>(key_bytes), sent.end(),
                         query.end() - static_cast<long>(key_bytes)));
}

}  // namespace
}  // namespace blindfuse
