#include "host/publish/filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/reference_pir.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using support::input_error_of;
using support::SeededRandom;

std::vector<uint64_t> random_hashes(SeededRandom& random, size_t count) {
  std::vector<uint64_t> hashes(count);
  for (uint64_t& hash : hashes) hash = random.u64();
  return hashes;
}

// The record of a key: a u64, so that a wrong sum of rows is not right by chance.
uint64_t record_of(size_t key) { return mix64(key + 1); }

// Gives every key its record, assigns rows in the order of the steps, and expects the rows of
// each key to add up to it.
void expect_filter_holds(const FuseShape& shape, const std::vector<uint64_t>& hashes,
                         const Filter& filter) {
  ASSERT_EQ(filter.steps.size(), hashes.size());
  std::vector<uint64_t> rows(shape.row_count, 0);
  std::vector<bool> key_seen(hashes.size());
  std::vector<bool> row_seen(shape.row_count);
  for (const FilterStep& step : filter.steps) {
    ASSERT_LT(step.key, hashes.size());
    ASSERT_LT(step.row, shape.row_count);
    ASSERT_FALSE(key_seen[step.key]) << "key " << step.key << " twice";
    ASSERT_FALSE(row_seen[step.row]) << "row " << step.row << " twice";
    key_seen[step.key] = true;
    row_seen[step.row] = true;
    uint64_t rest = record_of(step.key);
    bool is_own = false;
    const auto own = fuse_rows(shape, filter.seed, hashes[step.key]);
    for (uint32_t i = 0; i < shape.arity; ++i) {
      is_own |= own[i] == step.row;
      rest -= rows[own[i]];
    }
    ASSERT_TRUE(is_own) << "row " << step.row << " is none of key " << step.key;
    rows[step.row] = rest;
  }
  for (size_t key = 0; key < hashes.size(); ++key) {
    const auto own = fuse_rows(shape, filter.seed, hashes[key]);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < shape.arity; ++i) sum += rows[own[i]];
    ASSERT_EQ(sum, record_of(key)) << "key " << key;
  }
}

// Seeds 0, 1, 2, ...: predictable, so that tests can tell which comes next.
NextSeed counted_seeds() {
  return [seed = uint64_t{0}]() mutable { return seed++; };
}

// Whether the graph of this seed peels, by the reference.
bool peels(const FuseShape& shape, const std::vector<uint64_t>& hashes, uint64_t seed) {
  std::vector<reference_pir::FilterEntry> entries;
  for (const uint64_t hash : hashes) {
    const reference_pir::FuseShape reference{shape.row_count, shape.segment_length, shape.arity};
    entries.push_back({reference_pir::rows_of_key(hash, seed, reference), {}});
  }
  return reference_pir::build_filter(entries, shape.row_count, 0).has_value();
}

class FilterOfArity : public testing::TestWithParam<uint32_t> {
 protected:
  void build_and_expect(const FuseShape& shape, size_t key_count, SeededRandom& random) {
    SCOPED_TRACE(std::to_string(key_count) + " keys");
    const std::vector<uint64_t> hashes = random_hashes(random, key_count);
    expect_filter_holds(shape, hashes, build_filter(shape, hashes, counted_seeds()));
  }
};

INSTANTIATE_TEST_SUITE_P(Arities, FilterOfArity, testing::Values(3u, 4u));

TEST_P(FilterOfArity, HoldsAnyNumberOfKeys) {
  SeededRandom random(200);
  std::vector<size_t> counts = {1000, 10'000, 1'000'000};
  for (size_t keys = 1; keys <= 200; ++keys) counts.push_back(keys);
  for (const size_t keys : counts) build_and_expect(fuse_shape(keys, GetParam()), keys, random);
  for (const size_t keys : {0, 1, 10, 1000, 4999}) {
    build_and_expect(fuse_shape(5000, GetParam()), keys, random);
  }
  // Hashes as they would be without hashing: the mixing with the seed must spread them.
  std::vector<uint64_t> hashes(10'000);
  std::iota(hashes.begin(), hashes.end(), 0u);
  const FuseShape shape = fuse_shape(hashes.size(), GetParam());
  expect_filter_holds(shape, hashes, build_filter(shape, hashes, counted_seeds()));
}

// More keys than the shape is meant for: several seeds in a row fail.
TEST(Filter, TriesManySeedsForATightShape) {
  SeededRandom random(206);
  const FuseShape shape{3, 64, 192};
  uint64_t highest = 0;
  for (int i = 0; i < 30; ++i) {
    const std::vector<uint64_t> hashes = random_hashes(random, 152);
    const Filter filter = build_filter(shape, hashes, counted_seeds());
    expect_filter_holds(shape, hashes, filter);
    highest = std::max(highest, filter.seed);
    for (uint64_t seed = 0; seed <= filter.seed; ++seed) {
      ASSERT_EQ(peels(shape, hashes, seed), seed == filter.seed) << "seed " << seed;
    }
  }
  std::printf("the highest seed was %llu\n", static_cast<unsigned long long>(highest));
  EXPECT_GT(highest, 2u);
}

TEST(Filter, RefusesAShapeThatNoSeedFits) {
  SeededRandom random(207);
  const FuseShape shape{3, 64, 192};
  const std::string message = input_error_of([&] {
    build_filter(shape, random_hashes(random, 193),
                 counted_seeds());  // one key more than there are rows
  });
  for (const char* part :
       {"192 rows", "193 keys", "too full", "--shards", "--fresh", "may add keys"}) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

// The inverse of mix64.
uint64_t unmix64(uint64_t x) {
  x ^= x >> 33;
  x *= 0x9cb4b2f8129337dbULL;  // of 0xc4ceb9fe1a85ec53, modulo 2^64
  x ^= x >> 33;
  x *= 0x4f74430c22a54005ULL;  // of 0xff51afd7ed558ccd
  x ^= x >> 33;
  return x;
}

// Two numbers that mean the same rows, whatever the seed, once they are mix64(slot hash + seed).
std::pair<uint64_t, uint64_t> twins(const FuseShape& shape, SeededRandom& random) {
  std::map<std::array<uint32_t, kArityMax>, uint64_t> seen;
  for (;;) {
    const uint64_t mixed = random.u64();
    const auto [other, is_new] = seen.try_emplace(fuse_rows(shape, 0, unmix64(mixed)), mixed);
    if (!is_new) return {other->second, mixed};
  }
}

// Whoever may add keys knows the shape, and for each seed that he expects looks for two keys with
// equal rows: no graph with both of them can be peeled.
TEST(Filter, IsMadeOfKeysChosenAgainstEverySeedButThoseThatItDraws) {
  SeededRandom random(209);
  std::vector<uint64_t> hashes = random_hashes(random, 1000);
  const FuseShape shape = fuse_shape(hashes.size() + 2 * kFilterTriesMax, 3);
  const auto [one, other] = twins(shape, random);
  for (uint64_t seed = 0; seed < kFilterTriesMax; ++seed) {
    ASSERT_EQ(mix64(unmix64(one)), one);
    hashes.push_back(unmix64(one) - seed);
    hashes.push_back(unmix64(other) - seed);
  }
  const std::string message = input_error_of([&] { build_filter(shape, hashes, counted_seeds()); });
  EXPECT_NE(message.find("chosen to collide"), std::string::npos) << message;
  const Filter filter = build_filter(shape, hashes, [&] { return random.u64(); });
  expect_filter_holds(shape, hashes, filter);
}

TEST(Filter, RefusesEqualHashesAndNamesTheCure) {
  SeededRandom random(208);
  for (const size_t keys : {2, 3, 100, 10'000}) {
    std::vector<uint64_t> hashes = random_hashes(random, keys);
    hashes[random.between(1, keys - 1)] = hashes[0];
    for (const uint32_t arity : {3u, 4u}) {
      const std::string message =
          input_error_of([&] { build_filter(fuse_shape(keys, arity), hashes, counted_seeds()); });
      EXPECT_NE(message.find("same slot hash"), std::string::npos) << message;
      EXPECT_NE(message.find("--fresh"), std::string::npos) << message;
    }
  }
}

}  // namespace
}  // namespace blindfuse
