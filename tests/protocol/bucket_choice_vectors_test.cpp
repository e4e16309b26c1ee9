// The buckets of keys against tests/vectors/buckets.json, which another program made from
// docs/PROTOCOL.md, section 21.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "src/protocol/key_hash.h"
#include "tests/vectors.h"

namespace blindfuse {
namespace {

using vectors::json;

KeyHash hash_of_case(const json& c) {
  const auto salt = vectors::array_from_hex<kSaltBytes>(c.at("salt"));
  return key_hash(salt, vectors::string_from_hex(c.at("key")));
}

TEST(BucketChoiceVectors, BucketsAreTheFrozenOnes) {
  const json file = vectors::read_vectors("buckets.json");
  std::set<BucketChoice> orders;
  for (const json& c : file.at("cases")) {
    SCOPED_TRACE(c.at("key"));
    const KeyHash hash = hash_of_case(c);
    EXPECT_EQ(vectors::to_hex(hash.digest), c.at("h").get<std::string>().substr(32));
    for (const auto& [count, buckets] : c.at("buckets").items()) {
      BucketChooser choose(static_cast<uint32_t>(std::stoul(count)));
      EXPECT_EQ(json(choose(hash)), buckets) << count;
      EXPECT_EQ(json(choose(hash)), buckets) << count << ", by a chooser that was used before";
    }
    orders.insert(BucketChooser(4)(hash));
  }
  EXPECT_EQ(orders.size(), 24u) << "the cases have every choice of three of four buckets";
}

TEST(BucketChoiceVectors, ShardsAreTheFrozenOnes) {
  const json file = vectors::read_vectors("buckets.json");
  for (const json& c : file.at("cases")) {
    SCOPED_TRACE(c.at("key"));
    const KeyHash hash = hash_of_case(c);
    for (const auto& [counts, expected] : c.at("shards").items()) {
      const auto shard_count = static_cast<uint32_t>(std::stoul(counts));
      const auto bucket_count =
          static_cast<uint32_t>(std::stoul(counts.substr(counts.find('/') + 1)));
      std::vector<uint32_t> shards;
      for (const uint32_t bucket : BucketChooser(bucket_count)(hash)) {
        shards.push_back(shard_in_bucket(hash.shard_hash, bucket, shard_count / bucket_count));
      }
      EXPECT_EQ(json(shards), expected) << counts;
    }
  }
}

}  // namespace
}  // namespace blindfuse
