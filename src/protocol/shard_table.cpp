#include "src/protocol/shard_table.h"

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

}  // namespace blindfuse
