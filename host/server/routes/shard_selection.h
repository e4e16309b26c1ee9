// The shards that a client names in a query string: "0-3,17".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace blindfuse {

struct ShardRange {
  uint32_t first = 0;
  uint32_t last = 0;  // included

  bool operator==(const ShardRange&) const = default;
};

// Ranges in the order in which they were named; no shard is named twice.
using ShardSelection = std::vector<ShardRange>;

// Throws BadInput, naming the part that is wrong by its place, when the text is not a list of
// numbers and ranges of shards 0 .. shard_count-1, or names a shard twice.
ShardSelection parse_shard_selection(std::string_view text, uint32_t shard_count);

// The same selection as text; equal selections have equal texts.
std::string format_shard_selection(const ShardSelection& selection);

}  // namespace blindfuse
