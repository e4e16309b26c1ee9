// Buckets for the keys of a request, where requests are for several keys (docs/PROTOCOL.md, section
// 21).
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "client/secret.h"
#include "src/protocol/bucket_choice.h"

namespace blindfuse {

inline constexpr uint32_t kNoBucket = std::numeric_limits<uint32_t>::max();

// Gives as many keys as possible a bucket of their own, one of their three. Returns the bucket of
// each key, or kNoBucket. All buckets are below bucket_count. It adds one key after another by an
// augmenting path (Kuhn's algorithm). A key that has a bucket keeps one, though perhaps another
// one of its three. A key that finds no augmenting path gets no bucket, also after later keys.
//
// The time depends on the keys: it is a few microseconds for 16 keys, and at most the square of the
// number of keys. So a client does this before it makes a query, and sends nothing in between.
// What is in memory meanwhile is wiped.
SecretBuffer<uint32_t> match_buckets(std::span<const BucketChoice> keys, uint32_t bucket_count);

}  // namespace blindfuse
