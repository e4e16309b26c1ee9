// The table of an epoch: the facts about every shard and every pack that a client must know, as
// fixed-width binary (docs/PROTOCOL.md, section 3).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/arithmetic/layout.h"
#include "src/protocol/sha256.h"
#include "src/protocol/shard_table.h"

namespace blindfuse {

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
