// The survey of the spooled input: the number of keys, the lengths of their values, and the loads
// of the shards.
#pragma once

#include <cstdint>
#include <vector>

#include "host/publish/input.h"
#include "host/system/worker_threads.h"
#include "src/arithmetic/layout.h"

namespace blindfuse {

struct Survey {
  uint64_t key_count = 0;  // after duplicates are resolved
  uint64_t duplicates_dropped = 0;
  uint32_t shortest_value = 0;  // bytes, as are the next three
  uint32_t median_value = 0;
  uint32_t percentile99_value = 0;
  uint32_t longest_value = 0;
};

// Memory: a KeyHashSet, and 16 bytes a key for each thread's partition. Throws InputError if a key
// comes twice and the policy is kError. The message names the key and both places of the first
// duplicate in the order of the input.
Survey survey_input(const Input& input, DuplicatePolicy policy, WorkerThreads& threads);

// The keys of the fullest shard of this layout, whose key_count is right. Where requests are for
// several keys, each key counts in a shard of each of its three buckets.
uint64_t fullest_shard(const Spool& spool, const Layout& layout, WorkerThreads& threads);

}  // namespace blindfuse
