// The layout for a given number of shards (its rows, its bits and its levels), and the numbers of
// shards to choose from.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/arithmetic/layout.h"

namespace blindfuse {

// The known sizes of the data, and the choices that the operator has fixed.
struct PlanRequest {
  DatabaseKind kind = DatabaseKind::kKeyword;
  uint64_t key_count = 0;
  RecordFormat record;
  uint32_t arity = 3;              // ignored for an index database
  std::optional<Mode> mode;        // nothing: the cheaper one
  const LweParams* lwe = nullptr;  // which fixes the mode, too; nullptr: the default of a mode
  bool is_inherited = false;       // the set is the previous epoch's, and not the operator's wish
  uint64_t lookups_per_client = 100;  // in one epoch
  std::optional<uint32_t> shard_count;
  std::optional<uint32_t> query_bits;
  std::optional<uint32_t> response_bits;
  std::optional<uint32_t> hint_bits;
  uint32_t levels = 1;     // 2: packed responses have a second level
  bool short_key = false;  // which packs with a short key
  // Requests for several keys, which take a keyword database, packed responses and one level.
  std::optional<BatchCode> batch;
};

// A layout whose failure bound is at most 2^-40, and its cost.
struct Plan {
  Layout layout;
  uint64_t sync_bytes = 0;   // tables, and hints or masks, once an epoch
  uint64_t total_bytes = 0;  // that, and the queries and responses of lookups_per_client look-ups
};

// The requests that look up this many keys: one for each, or full ones for several keys.
uint64_t request_count(const Layout& layout, uint64_t lookups);

// The bytes of a query and its response.
uint64_t request_bytes(const Layout& layout);

// The expected number of records in the fullest of shard_count shards: the mean plus the usual
// excess of a maximum of binomials. This is an estimate for planning. A build counts. The records
// are the keys, or three for each key where requests are for several keys (Layout::record_count).
uint64_t expected_fullest_shard(uint64_t record_count, uint32_t shard_count);

// Estimates for the records of a request, in even shards for an index database.
uint64_t expected_fullest_shard(const PlanRequest& request, uint32_t shard_count);

// The sensible numbers of shards, or the fixed one; fewest first. Throws InputError if the fixed
// number is not a multiple of the number of buckets.
std::vector<uint32_t> shard_choices(const PlanRequest& request);

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

// Each of two levels may have half of a look-up's failures.
inline constexpr double kLevelFailureLog2Max = kFailureLog2Max - 1;

// The most columns of a group with a short key: its order is at most half of a pack.
inline constexpr uint32_t kShortKeyColumnsMax = 512;

// The second level that adds the fewest bytes to a query and a response of this layout, with a
// failure bound of its own of at most kLevelFailureLog2Max. layout: with its shards, its record and
// response_bits, without a second level. has_short_key: with a key whose order is the least power
// of two that a row's columns fit. Nothing if there is none.
std::optional<SecondLevel> plan_second_level(const Layout& layout, bool has_short_key);

}  // namespace blindfuse
