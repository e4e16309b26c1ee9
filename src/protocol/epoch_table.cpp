#include "src/protocol/epoch_table.h"

#include <algorithm>
#include <string>

#include "src/base/errors.h"

namespace blindfuse {

uint64_t epoch_table_bytes(const Layout& layout) {
  return uint64_t{layout.shard_count} * kShardEntryBytes +
         uint64_t{layout.pack_count()} * kPackEntryBytes;
}

std::vector<uint8_t> serialize_epoch_table(const EpochTable& table) {
  std::vector<uint8_t> bytes = serialize_shard_table(table.shards);
  for (const PackEntry& pack : table.packs) {
    bytes.insert(bytes.end(), pack.table.begin(), pack.table.end());
    bytes.insert(bytes.end(), pack.mask.begin(), pack.mask.end());
  }
  return bytes;
}

EpochTable parse_epoch_table(std::span<const uint8_t> bytes, const Layout& layout) {
  if (bytes.size() != epoch_table_bytes(layout)) {
    throw InputError("a table of " + std::to_string(bytes.size()) + " bytes; " +
                     std::to_string(layout.shard_count) + " shards and " +
                     std::to_string(layout.pack_count()) + " packs need " +
                     std::to_string(epoch_table_bytes(layout)));
  }
  const size_t shards_bytes = layout.shard_count * kShardEntryBytes;
  EpochTable table{parse_shard_table(bytes.first(shards_bytes), layout.shard_count), {}};
  table.packs.resize(layout.pack_count());
  const uint8_t* at = bytes.data() + shards_bytes;
  for (PackEntry& pack : table.packs) {
    std::copy_n(at, pack.table.size(), pack.table.begin());
    std::copy_n(at + 32, pack.mask.size(), pack.mask.begin());
    at += kPackEntryBytes;
  }
  return table;
}

}  // namespace blindfuse
