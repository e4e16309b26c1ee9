// The input and the result of planning a layout.
#pragma once

#include <cstdint>
#include <optional>

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
  bool is_unasked = false;         // the set is the previous epoch's, and not the operator's wish
  uint64_t lookups_per_client = 100;  // in one epoch
  std::optional<uint32_t> shard_count;
  std::optional<uint32_t> query_bits;
  std::optional<uint32_t> response_bits;
  std::optional<uint32_t> hint_bits;
  uint32_t levels = 1;       // 2: packed responses have a second level
  bool short_key = false;    // which packs with a short key
  bool levels_open = false;  // plan_kinds() plans two levels in addition to one
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

}  // namespace blindfuse
