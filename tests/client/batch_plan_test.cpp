#include "client/batch_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <set>
#include <vector>

namespace blindfuse {
namespace {

using Keys = std::vector<BucketChoice>;

std::vector<BucketChoice> all_choices(uint32_t bucket_count) {
  std::vector<BucketChoice> choices;
  for (uint32_t a = 0; a < bucket_count; ++a) {
    for (uint32_t b = a + 1; b < bucket_count; ++b) {
      for (uint32_t c = b + 1; c < bucket_count; ++c) choices.push_back({c, a, b});
    }
  }
  return choices;
}

// By Hall's theorem as Ore extended it: of every set of keys, at least as many find no bucket as it
// has more keys than buckets.
size_t most_possible(const Keys& keys) {
  size_t left_out = 0;
  for (uint32_t set = 0; set < 1u << keys.size(); ++set) {
    uint64_t buckets = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      if ((set >> i & 1) == 0) continue;
      for (const uint32_t bucket : keys[i]) buckets |= uint64_t{1} << bucket;
    }
    const auto key_count = static_cast<size_t>(std::popcount(set));
    const auto bucket_count = static_cast<size_t>(std::popcount(buckets));
    if (key_count > bucket_count) left_out = std::max(left_out, key_count - bucket_count);
  }
  return keys.size() - left_out;
}

// How many keys got a bucket. Fails if it is not one of their own, or of another key, too.
size_t matched(const Keys& keys, uint32_t bucket_count) {
  const SecretBuffer<uint32_t> buckets = match_buckets(keys, bucket_count);
  EXPECT_EQ(buckets.size(), keys.size());
  std::vector<bool> taken(bucket_count);
  size_t count = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (buckets[i] == kNoBucket) continue;
    EXPECT_NE(std::find(keys[i].begin(), keys[i].end(), buckets[i]), keys[i].end());
    EXPECT_FALSE(taken.at(buckets[i]));
    taken.at(buckets[i]) = true;
    ++count;
  }
  return count;
}

// All lists of `count` keys, from those in `keys` on.
template <class Use>
void for_all(const std::vector<BucketChoice>& choices, size_t count, Keys& keys, const Use& use) {
  if (keys.size() == count) return use();
  for (const BucketChoice& choice : choices) {
    keys.push_back(choice);
    for_all(choices, count, keys, use);
    keys.pop_back();
  }
}

TEST(BucketMatching, IsTheLargestForAllSmallRequests) {
  struct Size {
    uint32_t bucket_count;
    size_t keys;
  };
  for (const Size& size : {Size{3, 5}, Size{4, 5}, Size{5, 4}, Size{6, 3}}) {
    SCOPED_TRACE(std::to_string(size.bucket_count) + " " + std::to_string(size.keys));
    Keys keys;
    for_all(all_choices(size.bucket_count), size.keys, keys,
            [&] { ASSERT_EQ(matched(keys, size.bucket_count), most_possible(keys)); });
  }
}

TEST(BucketMatching, IsTheLargestForCrowdedRequests) {
  std::mt19937 random(4);
  size_t violations = 0;
  for (int i = 0; i < 2000; ++i) {
    const uint32_t bucket_count = 6 + random() % 4;
    const std::vector<BucketChoice> choices = all_choices(bucket_count);
    Keys keys;
    for (uint32_t k = 0; k < bucket_count + 1; ++k) {
      // Many keys of few choices.
      keys.push_back(choices[random() % 9]);
    }
    const size_t most = most_possible(keys);
    violations += most < keys.size() - 1 ? 1 : 0;
    ASSERT_EQ(matched(keys, bucket_count), most);
  }
  EXPECT_GT(violations, 100u);
}

TEST(BucketMatching, FindsLongPaths) {
  // Key i may have buckets i, i + 1 and i + 2, and takes its first. So the nearest free bucket of
  // the three keys that come last is at the other end.
  constexpr uint32_t kBuckets = 1000;
  Keys keys;
  for (uint32_t i = 0; i + 3 < kBuckets; ++i) keys.push_back({i, i + 1, i + 2});
  for (int i = 0; i < 3; ++i) keys.push_back({0, 1, 2});
  EXPECT_EQ(matched(keys, kBuckets), kBuckets - 1);  // no key has the last one
}

TEST(BucketMatching, KeysThatHaveABucketKeepOne) {
  const Keys keys = {{0, 1, 2}, {0, 1, 2}, {0, 1, 2}, {0, 1, 2}, {2, 1, 0}};
  const SecretBuffer<uint32_t> buckets = match_buckets(keys, 4);
  for (size_t i = 0; i < 3; ++i) EXPECT_NE(buckets[i], kNoBucket);
  EXPECT_EQ(buckets[3], kNoBucket);
  EXPECT_EQ(buckets[4], kNoBucket);
  EXPECT_TRUE(match_buckets({}, 4).empty());
  EXPECT_DEATH_IF_SUPPORTED(match_buckets(Keys{{0, 1, 4}}, 4), "the bucket exists");
}

// 6e-7 of the requests leave a key out.
TEST(BucketMatching, AlmostNeverLeavesAKeyOut) {
  constexpr size_t kKeys = 16;
  constexpr uint32_t kBuckets = usual_bucket_count(kKeys);
  static_assert(kBuckets == 32);
  std::mt19937_64 random(5);
  size_t left_out = 0;
  for (int i = 0; i < 100'000; ++i) {
    Keys keys;
    while (keys.size() < kKeys) {
      const BucketChoice choice = {static_cast<uint32_t>(random() % kBuckets),
                                   static_cast<uint32_t>(random() % kBuckets),
                                   static_cast<uint32_t>(random() % kBuckets)};
      if (choice[0] == choice[1] || choice[0] == choice[2] || choice[1] == choice[2]) continue;
      keys.push_back(choice);
    }
    left_out += kKeys - matched(keys, kBuckets);
  }
  EXPECT_LE(left_out, 3u);  // 0.06 are expected
}

// `count` hashes of keys with the same buckets.
std::vector<KeyHash> colliding(const BatchCode& code, size_t count, uint64_t from = 1) {
  BucketChooser choose(code.bucket_count);
  std::vector<KeyHash> hashes;
  std::set<uint32_t> wanted;
  for (uint64_t i = from; hashes.size() < count; ++i) {
    const KeyHash hash{.shard_hash = i, .slot_hash = i * i, .digest = {}};
    const BucketChoice own = choose(hash);
    const std::set<uint32_t> buckets(own.begin(), own.end());
    if (wanted.empty()) wanted = buckets;
    if (buckets == wanted) hashes.push_back(hash);
  }
  return hashes;
}

BatchPlan plan_of(const std::vector<KeyHash>& hashes, const BatchCode& code) {
  SecretBuffer<KeyHash> copy(hashes.size());
  std::copy(hashes.begin(), hashes.end(), copy.span().begin());
  return BatchPlan(std::move(copy), code);
}

// Checks a plan, and returns how many keys it leaves out.
size_t check_plan(const std::vector<KeyHash>& hashes, const BatchCode& code) {
  const BatchPlan plan = plan_of(hashes, code);
  EXPECT_EQ(plan.key_count(), hashes.size());
  EXPECT_EQ(plan.request_count(),
            (hashes.size() + code.keys_per_request - 1) / code.keys_per_request);
  BucketChooser choose(code.bucket_count);
  const auto none = static_cast<uint32_t>(hashes.size());
  EXPECT_EQ(plan.hash_of(none), KeyHash());
  std::vector<size_t> request_of(hashes.size(), plan.request_count());
  for (size_t request = 0; request < plan.request_count(); ++request) {
    for (uint32_t bucket = 0; bucket < code.bucket_count; ++bucket) {
      const uint32_t key = plan.key_of(request, bucket);
      if (key == none) continue;
      EXPECT_EQ(plan.first_of(key), key);
      EXPECT_EQ(plan.hash_of(key), hashes.at(key));
      const BucketChoice own = choose(hashes[key]);
      EXPECT_NE(std::find(own.begin(), own.end(), bucket), own.end());
      EXPECT_EQ(request_of[key], plan.request_count()) << "asked for twice";
      request_of[key] = request;
    }
  }
  size_t left_out = 0;
  std::vector<size_t> asked_in(plan.request_count() + 1);
  for (uint32_t key = 0; key < hashes.size(); ++key) {
    const auto first = static_cast<uint32_t>(std::find(hashes.begin(), hashes.end(), hashes[key]) -
                                             hashes.begin());
    EXPECT_EQ(plan.first_of(key), first);
    EXPECT_EQ(plan.request_of(key), request_of[first]);
    ++asked_in[request_of[first]];
    left_out += request_of[first] == plan.request_count() ? 1 : 0;
  }
  for (size_t request = 0; request < plan.request_count(); ++request) {
    EXPECT_EQ(plan.asked_in(request), asked_in[request]);
  }
  return left_out;
}

TEST(BatchPlan, AsksForEveryKeyOnce) {
  const BatchCode code{.keys_per_request = 16, .bucket_count = 32};
  std::mt19937_64 random(6);
  for (const size_t count : {0u, 1u, 15u, 16u, 17u, 32u, 33u, 1000u}) {
    SCOPED_TRACE(count);
    std::vector<KeyHash> hashes(count);
    for (KeyHash& hash : hashes) hash = {random(), random(), {static_cast<uint8_t>(random())}};
    EXPECT_EQ(check_plan(hashes, code), 0u);
    // All of them twice, and the first one very often.
    const std::vector<KeyHash> once = hashes;
    hashes.insert(hashes.end(), once.begin(), once.end());
    if (count > 0) hashes.insert(hashes.begin() + 1, 40, once[0]);
    EXPECT_EQ(check_plan(hashes, code), 0u);
  }
}

TEST(BatchPlan, AKeyThatFindsNoBucketGoesToTheNextRequest) {
  const BatchCode code{.keys_per_request = 4, .bucket_count = 4};
  const std::vector<KeyHash> same = colliding(code, 20);
  // Requests are of 4 keys, of which 3 find a bucket.
  EXPECT_EQ(check_plan({same.begin(), same.begin() + 3}, code), 0u);
  EXPECT_EQ(check_plan({same.begin(), same.begin() + 4}, code), 1u);
  EXPECT_EQ(check_plan({same.begin(), same.begin() + 5}, code), 0u);  // 3 and 2
  EXPECT_EQ(check_plan({same.begin(), same.begin() + 6}, code), 0u);
  EXPECT_EQ(check_plan({same.begin(), same.begin() + 7}, code), 1u);
  EXPECT_EQ(check_plan({same.begin(), same.begin() + 8}, code), 2u);
  EXPECT_EQ(check_plan(same, code), 5u);
  // One that comes again is left out as often.
  std::vector<KeyHash> repeated(same.begin(), same.begin() + 4);
  for (int i = 0; i < 4; ++i) repeated.push_back(repeated[0]);
  EXPECT_EQ(check_plan(repeated, code), 0u);
}

// Those that are left out stand before others in the next request, and not next to keys of the same
// buckets.
TEST(BatchPlan, AKeyThatIsCarriedOverKeepsItsOwnBuckets) {
  const BatchCode code{.keys_per_request = 8, .bucket_count = 16};
  std::vector<KeyHash> hashes = colliding(code, 5);
  std::mt19937_64 random(1);
  while (hashes.size() < 16) hashes.push_back({random(), random(), {}});
  EXPECT_EQ(check_plan(hashes, code), 0u);
}

TEST(BatchPlan, DividesKeysEvenly) {
  const BatchCode code{.keys_per_request = 16, .bucket_count = 32};
  std::mt19937_64 random(7);
  std::vector<KeyHash> hashes(17);
  for (KeyHash& hash : hashes) hash = {random(), random(), {}};
  const BatchPlan plan = plan_of(hashes, code);
  ASSERT_EQ(plan.request_count(), 2u);
  EXPECT_EQ(plan.asked_in(0), 9u);
  EXPECT_EQ(plan.asked_in(1), 8u);
}

}  // namespace
}  // namespace blindfuse
