#include "client/bucket_matching.h"

#include <algorithm>
#include <utility>

#include "src/base/errors.h"

namespace blindfuse {
namespace {

constexpr uint32_t kNoKey = std::numeric_limits<uint32_t>::max();

class Matching {
 public:
  Matching(std::span<const BucketChoice> keys, uint32_t bucket_count)
      : keys_(keys),
        bucket_of_(keys.size()),
        key_of_(bucket_count),
        reached_from_(bucket_count),
        reached_for_(bucket_count),
        queue_(keys.size()) {
    std::fill(bucket_of_.span().begin(), bucket_of_.span().end(), kNoBucket);
    std::fill(key_of_.span().begin(), key_of_.span().end(), kNoKey);
    std::fill(reached_for_.span().begin(), reached_for_.span().end(), kNoKey);
  }

  // Searches, breadth first, from the key to the buckets that it may have, from each of them to the
  // key that has it, and so on, up to a bucket that no key has.
  void add(uint32_t key) {
    size_t queued = 0;
    queue_[queued++] = key;
    for (size_t at = 0; at < queued; ++at) {
      const uint32_t from = queue_[at];
      for (const uint32_t bucket : keys_[from]) {
        if (reached_for_[bucket] == key) continue;
        reached_for_[bucket] = key;
        reached_from_[bucket] = from;
        if (key_of_[bucket] == kNoKey) {
          move_along(bucket);
          return;
        }
        queue_[queued++] = key_of_[bucket];
      }
    }
  }

  SecretBuffer<uint32_t> take() && { return std::move(bucket_of_); }

 private:
  // Each key on the path gives the bucket that it had to the key before it.
  void move_along(uint32_t bucket) {
    while (bucket != kNoBucket) {
      const uint32_t key = reached_from_[bucket];
      key_of_[bucket] = key;
      bucket = std::exchange(bucket_of_[key], bucket);
    }
  }

  const std::span<const BucketChoice> keys_;
  SecretBuffer<uint32_t> bucket_of_;
  SecretBuffer<uint32_t> key_of_;
  // How the search that was made last for a bucket came to it: from which key, and for which.
  SecretBuffer<uint32_t> reached_from_;
  SecretBuffer<uint32_t> reached_for_;
  SecretBuffer<uint32_t> queue_;  // every key comes once at most, as the one of a bucket
};

}  // namespace

SecretBuffer<uint32_t> match_buckets(std::span<const BucketChoice> keys, uint32_t bucket_count) {
  invariant(keys.size() < kNoKey, "keys have numbers of 32 bits");
  for (const BucketChoice& choice : keys) {
    for (const uint32_t bucket : choice) invariant(bucket < bucket_count, "the bucket exists");
  }
  Matching matching(keys, bucket_count);
  for (uint32_t key = 0; key < keys.size(); ++key) matching.add(key);
  return std::move(matching).take();
}

}  // namespace blindfuse
