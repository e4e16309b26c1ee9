// A probabilistic batch code: how a request asks for several keys at once (SealPIR, section 4).
#pragma once

#include <cstdint>

namespace blindfuse {

// Every key is stored in three of the buckets. A request has one query for each bucket, and so asks
// for up to keys_per_request keys that lie in different buckets.
struct BatchCode {
  uint32_t keys_per_request = 0;  // K
  uint32_t bucket_count = 0;      // B

  bool operator==(const BatchCode&) const = default;
};

// The buckets of a key, all different.
inline constexpr uint32_t kBucketChoices = 3;

inline constexpr uint32_t kKeysPerRequestMin = 2;
inline constexpr uint32_t kKeysPerRequestMax = 1024;
inline constexpr uint32_t kBucketCountMax = 4096;

// The usual number of buckets for requests of K keys: 2 K up to 32 keys, and 1.5 K from 43 keys on.
// How often a full request then leaves a key out: docs/PARAMETERS.md, section 9.
constexpr uint32_t usual_bucket_count(uint32_t keys_per_request) {
  const uint32_t large = (3 * keys_per_request + 1) / 2;
  if (keys_per_request <= 32) return 2 * keys_per_request;
  return large < 64 ? 64 : large;
}

}  // namespace blindfuse
