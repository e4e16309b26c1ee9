#include "host/ingest/spool.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "tests/support.h"

namespace blindfuse {
namespace {

using support::SeededRandom;

KeyHash hash_of(uint64_t shard_hash, uint64_t slot_hash, uint8_t digest) {
  KeyHash hash{shard_hash, slot_hash, {}};
  hash.digest.back() = digest;
  return hash;
}

// Against a map: few different hashes that come often, and many of which parts are equal.
TEST(KeyHashSet, NumbersHashesInTheOrderInWhichTheyCome) {
  SeededRandom random(1200);
  KeyHashSet set;
  for (int round = 0; round < 2; ++round) {
    std::map<KeyHash, uint32_t> numbers;
    for (int i = 0; i < 20'000; ++i) {
      const KeyHash hash =
          hash_of(random.below(5), random.below(500), static_cast<uint8_t>(random.below(3)));
      const auto [known, is_new] = numbers.try_emplace(hash, numbers.size());
      const KeyHashSet::Place place = set.insert(hash);
      ASSERT_EQ(place.number, known->second);
      ASSERT_EQ(place.is_new, is_new);
      ASSERT_EQ(set.size(), numbers.size());
    }
    set.clear();
    EXPECT_EQ(set.size(), 0u);
  }
}

// The slot hashes of an index database's partition.
TEST(KeyHashSet, TakesNumbersWithACommonStride) {
  KeyHashSet set;
  for (uint32_t i = 0; i < 200'000; ++i) {
    ASSERT_TRUE(set.insert(hash_of(0, uint64_t{i} * 1024 + 7, 0)).is_new);
  }
  EXPECT_EQ(set.insert(hash_of(0, 1024 * 4711 + 7, 0)).number, 4711u);
}

}  // namespace
}  // namespace blindfuse
