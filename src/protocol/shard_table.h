// The table of shards: the facts about every shard that a client must know, as fixed-width binary
// (docs/PROTOCOL.md, section 3).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/protocol/sha256.h"

namespace blindfuse {

inline constexpr size_t kShardEntryBytes = 112;

struct ShardEntry {
  uint64_t filter_seed = 0;
  uint64_t key_count = 0;
  Sha256Digest input{};   // of the shard's keys and values; tells an unchanged shard
  Sha256Digest matrix{};  // of the R * W bytes, column by column
  Sha256Digest hint{};    // of the hint; zeros where responses are packed

  bool operator==(const ShardEntry&) const = default;
};

using ShardTable = std::vector<ShardEntry>;

std::vector<uint8_t> serialize_shard_table(const ShardTable& table);

// Throws InputError if the length is not that of shard_count entries.
ShardTable parse_shard_table(std::span<const uint8_t> bytes, uint32_t shard_count);

}  // namespace blindfuse
