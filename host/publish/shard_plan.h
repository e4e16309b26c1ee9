// The layout for a given number of shards: its rows, its bits, and its levels.
#pragma once

#include <cstdint>
#include <optional>

#include "host/publish/plan_request.h"

namespace blindfuse {

// The layout for a given number of shards whose fullest has fullest_shard records. It has the bit
// counts (if they are not fixed) that make it cheapest for the set request.lwe, which must be
// there. Nothing if no bit counts keep the failure bound at 2^-40. Throws InputError if it takes
// more rows than there can be, or a query more words.
std::optional<Plan> plan_shards(const PlanRequest& request, uint32_t shard_count,
                                uint64_t fullest_shard);

// Throws the InputError that says by how much the best fails that the operator's choices leave
// open, for a request for which plan_shards() found nothing. The layout for a given number of
// shards, whose fullest has fullest_shard records, is the example.
[[noreturn]] void refuse_shards(const PlanRequest& request, uint32_t shard_count,
                                uint64_t fullest_shard);

}  // namespace blindfuse
