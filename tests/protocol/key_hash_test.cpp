#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "src/protocol/key_hash.h"
#include "tests/reference_pir.h"
#include "tests/support.h"
#include "tests/vectors.h"

namespace blindfuse {
namespace {

using support::SeededRandom;
using vectors::integer;
using vectors::json;

std::string key_of(const json& key) {
  if (!key.contains("repeat")) return vectors::string_from_hex(key.at("bytes"));
  const std::string part = vectors::string_from_hex(key.at("repeat"));
  std::string whole;
  for (int i = 0; i < key.at("times").get<int>(); ++i) whole += part;
  return whole;
}

TEST(KeyHash, AgreesWithTheVectors) {
  const json file = vectors::read_vectors("key_hash.json");
  for (const json& c : file.at("cases")) {
    SCOPED_TRACE(c.at("name"));
    const auto salt = vectors::array_from_hex<kSaltBytes>(c.at("salt"));
    const KeyHash hash = key_hash(salt, key_of(c.at("key")));
    EXPECT_EQ(hash.shard_hash, integer(c.at("x0")));
    EXPECT_EQ(hash.slot_hash, integer(c.at("x1")));
    EXPECT_EQ(vectors::to_hex(hash.digest), c.at("h").get<std::string>().substr(32));
    for (const auto& [bytes, digest] : c.at("digest").items()) {
      EXPECT_EQ(json(vectors::to_hex(std::span(hash.digest).first(std::stoul(bytes)))), digest);
    }
    for (const auto& [count, shard] : c.at("shard").items()) {
      EXPECT_EQ(shard_of(hash.shard_hash, static_cast<uint32_t>(std::stoul(count))), shard);
    }
  }
}

TEST(KeyHash, OfManyKeysIsThatOfEach) {
  SeededRandom random(3);
  Salt salt;
  for (uint8_t& byte : salt) byte = random.byte();
  KeyHasher hasher(salt);
  for (int i = 0; i < 500; ++i) {
    const std::string key = random.bytes(random.below(200));
    EXPECT_EQ(hasher(key), key_hash(salt, key));
  }
}

// The first hash of shard i is ceil(i * 2^64 / count): that one and the one before it differ.
TEST(ShardOf, ChangesExactlyAtTheBoundaries) {
  SeededRandom random(4);
  for (const uint32_t count : {2u, 3u, 5u, 1000u, 65'536u}) {
    for (int i = 0; i < 100; ++i) {
      const auto shard = static_cast<uint32_t>(random.between(1, count - 1));
      const uint64_t wrapped =
          uint64_t{0} - count;                     // 2^64 - count, which has the remainder of 2^64
      const uint64_t whole = wrapped / count + 1;  // floor(2^64 / count)
      const uint64_t rest = wrapped % count;       // 2^64 mod count
      const uint64_t first = whole * shard + (rest * shard + count - 1) / count;
      EXPECT_EQ(shard_of(first, count), shard);
      EXPECT_EQ(shard_of(first - 1, count), shard - 1);
    }
  }
}

TEST(ShardOf, IsMonotoneAndAgreesWithTheReference) {
  SeededRandom random(5);
  std::vector<uint64_t> hashes;
  for (int i = 0; i < 10'000; ++i) hashes.push_back(random.u64());
  std::sort(hashes.begin(), hashes.end());
  for (const uint32_t count : {1u, 3u, 10u, 65'536u}) {
    EXPECT_EQ(shard_of(0, count), 0u);
    EXPECT_EQ(shard_of(UINT64_MAX, count), count - 1);
    uint32_t previous = 0;
    for (const uint64_t hash : hashes) {
      const uint32_t shard = shard_of(hash, count);
      ASSERT_EQ(shard, reference_pir::mulhi(hash, count));
      ASSERT_GE(shard, previous);
      previous = shard;
    }
  }
}

// The buckets of keys against tests/vectors/buckets.json, which another program made from
// docs/PROTOCOL.md, section 21.
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
