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
// each key, or kNoBucket. The buckets of the keys are below bucket_count. Keys are taken in their
// order by the augmenting paths of Kuhn: a key that has a bucket keeps one, and one that finds none
// would find none later either.
//
// The time depends on the keys: it is a few microseconds for 16 keys, and at most the square of the
// number of keys. So a client does this before it makes a query, and sends nothing in between.
// What is in memory meanwhile is wiped.
SecretBuffer<uint32_t> match_buckets(std::span<const BucketChoice> keys, uint32_t bucket_count);

}  // namespace blindfuse
