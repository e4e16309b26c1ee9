// Which keys each request of a call asks for, where requests are for several keys
// (docs/PROTOCOL.md, section 21).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "client/secret.h"
#include "src/arithmetic/batch_code.h"
#include "src/protocol/key_hash.h"

namespace blindfuse {

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

  // The key for which a request asks a bucket, or the number n where it asks for none. Of a key
  // that comes several times it is the first.
  uint32_t key_of(size_t request, uint32_t bucket) const {
    return key_of_[request * bucket_count_ + bucket];
  }
  // The hash of a key. Of n, which is none, it is zeros.
  const KeyHash& hash_of(uint32_t key) const { return hashes_[key]; }

  // The first key that is the same as this one.
  uint32_t first_of(uint32_t key) const { return first_of_[key]; }
  // The request that asks for a key, or request_count() if none does.
  size_t request_of(uint32_t key) const { return request_of_[first_of_[key]]; }
  // How many of the n keys a request asks for.
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

}  // namespace blindfuse
