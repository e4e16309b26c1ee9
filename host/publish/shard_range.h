// Reads the entries of some neighbouring shards from the spool.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "host/ingest/spool.h"

namespace blindfuse {

// The lowest shard_hash x with shard_of(x, shard_count) == shard: ceil(shard * 2^64 / shard_count);
// shard < shard_count.
uint64_t lowest_shard_hash(uint32_t shard, uint32_t shard_count);

// Shards first .. last-1, each with its entries that count, sorted by slot hash.
class ShardRange {
 public:
  ShardRange(const Spool& spool, uint32_t shard_count, uint32_t first, uint32_t last);

  std::span<const SpoolEntry> shard(uint32_t shard) const { return shards_[shard - first_]; }

 private:
  uint32_t first_;
  SpoolPart part_;  // owns the values' bytes
  std::vector<std::vector<SpoolEntry>> shards_;
};

}  // namespace blindfuse
