// The plan of a call: the keys that each of its requests asks for, where a request is for several
// keys (docs/PROTOCOL.md, section 21).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "client/database_description.h"
#include "client/secret.h"
#include "src/arithmetic/layout.h"
#include "src/protocol/key_hash.h"

namespace blindfuse {

inline constexpr uint32_t kNoBucket = std::numeric_limits<uint32_t>::max();

// Gives as many keys as possible a bucket of their own, one of their three. Returns the bucket of
// each key, or kNoBucket. All buckets are below bucket_count. It adds one key after another by an
// augmenting path (Kuhn's algorithm). A key that has a bucket keeps one, though perhaps another one
// of its three. A key that finds no augmenting path gets no bucket, also after later keys.
//
// The time depends on the keys: it is a few microseconds for 16 keys, and at most the square of the
// number of keys. So a client does this before it makes a query, and sends nothing in between. Its
// working memory is wiped.
SecretBuffer<uint32_t> match_buckets(std::span<const BucketChoice> keys, uint32_t bucket_count);

// A plan for n keys has ceil(n / K) requests, whatever the keys are. A key that comes several times
// is asked for once, and counts in n each time. The keys that are left are divided evenly among the
// requests that are left. A key that finds no bucket in a request is among the first of the next
// one. After the last request it is left out: not asked for.
//
// The time of making a plan depends on the keys (match_buckets()): some microseconds a request. A
// plan is of all requests, and is made before the first. All that it holds is wiped.
class BatchPlan {
 public:
  // Takes the hashes of the keys.
  BatchPlan(SecretBuffer<KeyHash> hashes, const BatchCode& code);

  size_t key_count() const { return first_of_.size(); }  // n
  size_t request_count() const { return request_count_; }

  // The key for which a request asks a bucket, or the number n where it asks for none. For a key
  // that comes several times it is the first one.
  uint32_t key_of(size_t request, uint32_t bucket) const {
    return key_of_[request * bucket_count_ + bucket];
  }
  // The hash of a key. For n, which stands for none, it is zeros.
  const KeyHash& hash_of(uint32_t key) const { return hashes_[key]; }

  // The first key that is the same as this one.
  uint32_t first_of(uint32_t key) const { return first_of_[key]; }
  // The request that asks for a key, or request_count() if none does.
  size_t request_of(uint32_t key) const { return request_of_[first_of_[key]]; }
  // The number of the n keys for which a request asks.
  uint32_t asked_in(size_t request) const { return asked_in_[request]; }

 private:
  void find_repeated();
  void match(const BatchCode& code);

  const uint32_t bucket_count_;
  const size_t request_count_;
  SecretBuffer<KeyHash> hashes_;  // of the keys, and zeros
  SecretBuffer<uint32_t> first_of_;
  SecretBuffer<uint32_t> request_of_;
  SecretBuffer<uint32_t> key_of_;  // of each bucket of each request
  SecretBuffer<uint32_t> asked_in_;
};

// Writes the place and the key of each bucket of one of a plan's requests: B places, and B numbers
// of keys as in BatchPlan::key_of(). Every bucket has a place, found in the same way: without a
// key, that of the hash of zeros. So the time does not depend on which buckets have keys.
void place_in_buckets(const DatabaseDescription& database, const BatchPlan& plan, size_t request,
                      std::span<KeyPlace> places, std::span<uint32_t> keys);

}  // namespace blindfuse
