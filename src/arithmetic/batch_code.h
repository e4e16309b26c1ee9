// A probabilistic batch code: how a request asks for several keys at once (SealPIR, section 4).
#pragma once

#include <cstdint>

namespace blindfuse {

// Every key is stored in three of the buckets. A request has one query, with R words for each
// bucket, and so asks for up to keys_per_request keys in different buckets.
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
inline constexpr uint32_t kBucketsPerKeyMax = 8;  // of a full request

// The usual number of buckets for requests of K keys: 2 K + 8 up to 12 keys, 32 up to 16, 2 K up to
// 48, 96 up to 64, and 1.5 K for more. How often a full request then leaves a key out:
// docs/PARAMETERS.md, section 9.
constexpr uint32_t usual_bucket_count(uint32_t keys_per_request) {
  const uint32_t twice = 2 * keys_per_request;
  if (keys_per_request <= 16) return twice + 8 < 32 ? twice + 8 : 32;
  const uint32_t large = (3 * keys_per_request + 1) / 2;
  const uint32_t most = large > 96 ? large : 96;
  return twice < most ? twice : most;
}

}  // namespace blindfuse
