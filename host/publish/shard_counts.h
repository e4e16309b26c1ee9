// Numbers of shards to choose from, and how full the shards are.
#pragma once

#include <cstdint>
#include <vector>

#include "host/publish/plan_request.h"

namespace blindfuse {

// The expected number of records in the fullest of shard_count shards: the mean plus the usual
// excess of a maximum of binomials. This is an estimate for planning. A build counts. The records
// are the keys, or three for each key where requests are for several keys (Layout::record_count).
uint64_t expected_fullest_shard(uint64_t record_count, uint32_t shard_count);

// The same for the records of a request, in even shards for an index database.
uint64_t expected_fullest_shard(const PlanRequest& request, uint32_t shard_count);

// The sensible numbers of shards, or the fixed one; fewest first. Throws InputError if the fixed
// number is not a multiple of the number of buckets.
std::vector<uint32_t> shard_choices(const PlanRequest& request);

}  // namespace blindfuse
