#include "src/protocol/epoch_table.h"

#include <algorithm>
#include <string>

#include "src/arithmetic/little_endian.h"
#include "src/base/errors.h"

namespace blindfuse {

std::vector<uint8_t> serialize_shard_table(const ShardTable& table) {
  std::vector<uint8_t> bytes(table.size() * kShardEntryBytes);
  uint8_t* at = bytes.data();
  for (const ShardEntry& entry : table) {
    store_le(at, entry.filter_seed);
    store_le(at + 8, entry.key_count);
    std::copy(entry.input.begin(), entry.input.end(), at + 16);
    std::copy(entry.matrix.begin(), entry.matrix.end(), at + 48);
    std::copy(entry.hint.begin(), entry.hint.end(), at + 80);
    at += kShardEntryBytes;
  }
  return bytes;
}

ShardTable parse_shard_table(std::span<const uint8_t> bytes, uint32_t shard_count) {
  if (bytes.size() != uint64_t{shard_count} * kShardEntryBytes) {
    throw InputError("a shard table of " + std::to_string(bytes.size()) + " bytes; " +
                     std::to_string(shard_count) + " shards need " +
                     std::to_string(uint64_t{shard_count} * kShardEntryBytes));
  }
  ShardTable table(shard_count);
  const uint8_t* at = bytes.data();
  for (ShardEntry& entry : table) {
    entry.filter_seed = load_le<uint64_t>(at);
    entry.key_count = load_le<uint64_t>(at + 8);
    std::copy_n(at + 16, 32, entry.input.begin());
    std::copy_n(at + 48, 32, entry.matrix.begin());
    std::copy_n(at + 80, 32, entry.hint.begin());
    at += kShardEntryBytes;
  }
  return table;
}

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
