// Which layout a database should have: the one that costs a client the fewest bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/layout.h"

namespace blindfuse {

// What is known, and what the operator has fixed.
struct PlanRequest {
  DatabaseKind kind = DatabaseKind::kKeyword;
  uint64_t key_count = 0;
  RecordFormat record;
  uint32_t arity = 3;  // ignored for an index database
  const LweParams* lwe = nullptr;
  uint64_t lookups_per_client = 100;  // in one epoch
  std::optional<uint32_t> shard_count;
  std::optional<uint32_t> query_bits;
  std::optional<uint32_t> response_bits;
  std::optional<uint32_t> hint_bits;
};

// A layout whose failure bound is at most 2^-40, and what it costs.
struct Plan {
  Layout layout;
  uint64_t sync_bytes = 0;   // shard table and hints, once an epoch
  uint64_t total_bytes = 0;  // that, and lookups_per_client queries and responses
};

// Keys in the fullest of shard_count shards, when key_count keys are thrown at them: the mean plus
// the usual excess of a maximum of binomials. An estimate for planning; a build counts.
uint64_t expected_fullest_shard(uint64_t key_count, uint32_t shard_count);

// The layout for a given number of shards whose fullest has fullest_shard keys, with the bit counts
// (those that are not fixed) that make it cheapest. Nothing when no bit counts keep the failure
// bound at 2^-40.
std::optional<Plan> plan_shards(const PlanRequest& request, uint32_t shard_count,
                                uint64_t fullest_shard);

// A plan for each sensible number of shards (or the one that is fixed), fewest first. Throws
// BadInput when there is none.
std::vector<Plan> plan_layouts(const PlanRequest& request);

// The cheapest of them: the fewest total bytes, and of equals the fewest shards.
const Plan& cheapest(const std::vector<Plan>& plans);

}  // namespace blindfuse
