#include "client/batch_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "src/base/errors.h"
#include "src/protocol/key_hash.h"

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
  // The path by which the last search came to each bucket: from which key, and for which.
  SecretBuffer<uint32_t> reached_from_;
  SecretBuffer<uint32_t> reached_for_;
  SecretBuffer<uint32_t> queue_;  // every key comes once at most, as the one of a bucket
};

// The hashes, and zeros after them.
SecretBuffer<KeyHash> with_none(const SecretBuffer<KeyHash>& hashes) {
  SecretBuffer<KeyHash> result(hashes.size() + 1);
  std::copy(hashes.span().begin(), hashes.span().end(), result.span().begin());
  return result;
}

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

BatchPlan::BatchPlan(SecretBuffer<KeyHash> hashes, const BatchCode& code)
    : bucket_count_(code.bucket_count),
      request_count_((hashes.size() + code.keys_per_request - 1) / code.keys_per_request),
      hashes_(with_none(hashes)),
      first_of_(hashes.size()),
      request_of_(hashes.size()),
      key_of_(request_count_ * bucket_count_),
      asked_in_(request_count_) {
  invariant(hashes.size() < std::numeric_limits<uint32_t>::max(), "keys have numbers of 32 bits");
  std::fill(request_of_.span().begin(), request_of_.span().end(),
            static_cast<uint32_t>(request_count_));
  std::fill(key_of_.span().begin(), key_of_.span().end(), static_cast<uint32_t>(key_count()));
  find_repeated();
  match(code);
}

void BatchPlan::find_repeated() {
  // Equal hashes are neighbours, the first key first.
  SecretBuffer<uint32_t> order(key_count());
  std::iota(order.span().begin(), order.span().end(), 0u);
  // KeyHash's own order would not do: the browsers' standard library has none for arrays.
  const auto place = [this](uint32_t key) {
    const KeyHash& hash = hashes_[key];
    return std::tie(hash.shard_hash, hash.slot_hash, hash.digest);
  };
  std::sort(order.span().begin(), order.span().end(), [&](uint32_t a, uint32_t b) {
    if (place(a) != place(b)) return place(a) < place(b);
    return a < b;
  });
  for (size_t i = 0; i < order.size(); ++i) {
    const bool repeats = i > 0 && hashes_[order[i]] == hashes_[order[i - 1]];
    first_of_[order[i]] = repeats ? first_of_[order[i - 1]] : order[i];
  }
}

void BatchPlan::match(const BatchCode& code) {
  BucketChooser choose(code.bucket_count);
  SecretBuffer<uint32_t> waiting(key_count());
  SecretBuffer<BucketChoice> choices(key_count());  // of those that wait
  size_t end = 0;
  for (uint32_t key = 0; key < key_count(); ++key) {
    if (first_of_[key] != key) continue;
    waiting[end] = key;
    choices[end++] = choose(hashes_[key]);
  }
  size_t begin = 0;
  for (size_t request = 0; request < request_count_; ++request) {
    const size_t requests_left = request_count_ - request;
    const size_t taken = (end - begin + requests_left - 1) / requests_left;
    const SecretBuffer<uint32_t> buckets =
        match_buckets(std::as_const(choices).span().subspan(begin, taken), code.bucket_count);
    // Keys that are left out move up to those that were not taken.
    size_t left = begin + taken;
    for (size_t i = taken; i-- > 0;) {
      const uint32_t key = waiting[begin + i];
      if (buckets[i] == kNoBucket) {
        --left;
        waiting[left] = key;
        choices[left] = choices[begin + i];
      } else {
        key_of_[request * bucket_count_ + buckets[i]] = key;
        request_of_[key] = static_cast<uint32_t>(request);
      }
    }
    begin = left;
  }
  for (uint32_t key = 0; key < key_count(); ++key) {
    if (const size_t request = request_of(key); request < request_count_) ++asked_in_[request];
  }
}

void place_in_buckets(const DatabaseDescription& database, const BatchPlan& plan, size_t request,
                      std::span<KeyPlace> places, std::span<uint32_t> keys) {
  invariant(places.size() == database.layout().bucket_count() && keys.size() == places.size(),
            "there is room for every bucket");
  for (uint32_t bucket = 0; bucket < places.size(); ++bucket) {
    keys[bucket] = plan.key_of(request, bucket);
    places[bucket] = database.place(plan.hash_of(keys[bucket]), bucket);
    places[bucket].asks = static_cast<uint32_t>(keys[bucket] != plan.key_count());
  }
}

}  // namespace blindfuse
