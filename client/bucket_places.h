// What a request asks of every bucket, where requests are for several keys (docs/PROTOCOL.md,
// section 21).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "client/batch_plan.h"
#include "client/database_description.h"
#include "client/prepared_query.h"
#include "client/secret.h"

namespace blindfuse {

// Writes the place and the key of each bucket of one of a plan's requests: B places, and B numbers
// of keys as in BatchPlan::key_of(). Returns what to ask of the buckets.
//
// Every bucket has a place, found in the same way: without a key, that of the hash of zeros. So the
// time does not depend on which buckets have keys.
SecretBuffer<BucketRows> places_in_buckets(const DatabaseDescription& database,
                                           const BatchPlan& plan, size_t request,
                                           std::span<KeyPlace> places, std::span<uint32_t> keys);

}  // namespace blindfuse
