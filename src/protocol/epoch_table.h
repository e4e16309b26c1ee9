// The table of an epoch: the facts about every shard and every pack that a client must know, as
// fixed-width binary (docs/PROTOCOL.md, section 3).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/arithmetic/layout.h"
#include "src/protocol/sha256.h"

namespace blindfuse {

inline constexpr size_t kShardEntryBytes = 112;

// A shard: the facts about it that a client must know.
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

inline constexpr size_t kPackEntryBytes = 64;

// A pack of 1024 columns, if responses are packed.
struct PackEntry {
  Sha256Digest table{};  // of the packing table, the server's
  Sha256Digest mask{};   // of the mask, the clients'

  bool operator==(const PackEntry&) const = default;
};

struct EpochTable {
  ShardTable shards;
  std::vector<PackEntry> packs;

  // The hash of part i of the hint, a bit sequence: that of shard i's hint, or of pack i's mask.
  const Sha256Digest& hint_hash(uint32_t i) const {
    return packs.empty() ? shards[i].hint : packs[i].mask;
  }

  bool operator==(const EpochTable&) const = default;
};

uint64_t epoch_table_bytes(const Layout& layout);

// The entries of the shards, and after them those of the packs.
std::vector<uint8_t> serialize_epoch_table(const EpochTable& table);

// Throws InputError if the length is not epoch_table_bytes().
EpochTable parse_epoch_table(std::span<const uint8_t> bytes, const Layout& layout);

}  // namespace blindfuse
