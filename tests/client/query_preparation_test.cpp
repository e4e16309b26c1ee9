#include "client/ring_query.h"

#include <blindfuse/errors.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "src/protocol/public_matrix.h"
#include "tests/client/seeded_random.h"

namespace blindfuse {
namespace {

Manifest manifest_of(const char* lwe) {
  Manifest manifest;
  manifest.layout.lwe = find_lwe_params(lwe);
  manifest.layout.row_count = 2 * 2048;
  manifest.layout.query_bits = 28;
  manifest.seed = {4, 5, 6};
  return manifest;
}

// What is sent of each, and the secrets.
std::vector<std::vector<uint8_t>> opened(std::vector<PreparedQuery> queries, size_t query_bytes) {
  std::vector<std::vector<uint8_t>> all;
  for (PreparedQuery& query : queries) {
    std::vector<uint8_t> bytes(query_bytes);
    const SecretBuffer<uint32_t> secret = std::move(query).encrypt({}, 28, bytes).take();
    std::transform(secret.span().begin(), secret.span().end(), std::back_inserter(bytes),
                   [](uint32_t word) { return static_cast<uint8_t>(word); });
    all.push_back(std::move(bytes));
  }
  return all;
}

TEST(QueryPreparation, IsOfThePublicMatrixWhereThereAreHints) {
  struct Set {
    const char* name;
    uint32_t dimension, error_max;
  };
  for (const Set& set : {Set{"lwe-1774", 1774, 1}, Set{"lwe-1288", 1288, 4}}) {
    SCOPED_TRACE(set.name);
    const Manifest manifest = manifest_of(set.name);
    const auto made = opened(prepare_queries_for(manifest, 2, 2, seeded_random(1)), 14'336);
    ASSERT_EQ(made.size(), 2u);
    const PublicMatrix a(manifest.seed, set.dimension);
    auto expected = prepare_queries(a, 4096, set.error_max, 2, 1, seeded_random(1));
    EXPECT_EQ(made, opened(std::move(expected), 14'336));
  }
}

TEST(QueryPreparation, IsOfThePublicPolynomialsWhereResponsesArePacked) {
  const Manifest manifest = manifest_of("ring-2048");
  constexpr size_t kBytes = 14'336 + 24'576;
  EXPECT_EQ(manifest.layout.query_bytes(), kBytes);
  for (const unsigned threads : {0u, 1u, 3u}) {
    const auto made = opened(prepare_queries_for(manifest, 2, threads, seeded_random(1)), kBytes);
    ASSERT_EQ(made.size(), 2u);
    const RingQueryMaker maker(ring::PublicPolynomials(manifest.seed), 4096);
    EXPECT_EQ(made, opened(maker.make(2, seeded_random(1)), kBytes));
  }
}

TEST(QueryPreparation, IsForDatabasesWithTheSamePublicMatrixAlone) {
  for (const char* lwe : {"lwe-1288", "ring-2048"}) {
    SCOPED_TRACE(lwe);
    const Manifest manifest = manifest_of(lwe);
    const auto made = prepare_queries_for(manifest, 1, 1, seeded_random(1));
    EXPECT_TRUE(made[0].is_for(manifest));
    Manifest next = manifest;  // of other bits, keys and values: what epochs may differ in
    next.layout.query_bits = 30;
    next.layout.shard_count = 3;
    next.layout.record.value_bytes = 7;
    next.salt = {1};
    EXPECT_TRUE(made[0].is_for(next));
    Manifest other = manifest;
    other.seed.back() ^= 1;
    EXPECT_FALSE(made[0].is_for(other));
    other = manifest;
    other.layout.row_count += 2048;
    EXPECT_FALSE(made[0].is_for(other));
    for (const LweParams& set : lwe_params()) {
      EXPECT_EQ(made[0].is_for(manifest_of(set.name.data())), set.name == lwe) << set.name;
    }
  }
}

TEST(QueryPreparation, IsForTheBucketsOfADatabase) {
  Manifest manifest = manifest_of("ring-2048");
  manifest.layout.row_count = 2048;
  manifest.layout.batch = BatchCode{.keys_per_request = 2, .bucket_count = 4};
  auto made = prepare_queries_for(manifest, 1, 1, seeded_random(1));
  EXPECT_EQ(made.at(0).row_count(), 4u * 2048);
  EXPECT_TRUE(made[0].is_for(manifest));
  Manifest other = manifest;  // as many rows in all
  other.layout.row_count = 4 * 2048;
  other.layout.batch.reset();
  EXPECT_EQ(other.layout.query_bytes(), manifest.layout.query_bytes());
  EXPECT_FALSE(made[0].is_for(other));
  EXPECT_FALSE(prepare_queries_for(other, 1, 1, seeded_random(1))[0].is_for(manifest));
  other = manifest;
  other.layout.row_count = 2 * 2048;
  other.layout.batch->bucket_count = 2;
  EXPECT_FALSE(made[0].is_for(other));
  other = manifest;
  other.layout.batch->keys_per_request = 3;
  EXPECT_TRUE(made[0].is_for(other));
}

TEST(QueryPreparation, IsForTheSecondLevelOfADatabase) {
  Manifest manifest = manifest_of("ring-2048");
  manifest.layout.shard_count = 10;
  manifest.layout.response_bits = 10;
  manifest.layout.second = SecondLevel{2, 25, 19, 13, 256};
  const auto made = prepare_queries_for(manifest, 1, 1, seeded_random(1));
  EXPECT_TRUE(made[0].is_for(manifest));
  Manifest other = manifest;  // with a short key of as many bytes
  other.layout.second->key_order = 512;
  EXPECT_EQ(other.layout.query_bytes(), manifest.layout.query_bytes());
  EXPECT_FALSE(made[0].is_for(other));
  other = manifest;
  other.layout.second->group_shards = 1;
  EXPECT_FALSE(made[0].is_for(other));
  other.layout.second.reset();
  EXPECT_FALSE(made[0].is_for(other));
}

TEST(QueryPreparation, IsForAModeAlone) {
  const Manifest manifest = manifest_of("ring-2048");
  const PreparedQuery with_no_keys(ProcessToken::current(), manifest.seed,
                                   SecretBuffer<uint32_t>(2048), SecretBuffer<uint32_t>(4096));
  EXPECT_FALSE(with_no_keys.is_for(manifest));
  const PreparedQuery with_keys(ProcessToken::current(), manifest.seed,
                                SecretBuffer<uint32_t>(1288), SecretBuffer<uint32_t>(4096),
                                std::vector<uint8_t>(24'576));
  EXPECT_FALSE(with_keys.is_for(manifest_of("lwe-1288")));
}

}  // namespace
}  // namespace blindfuse
