// Tables of shards and packs. The first four bytes make the layout: shards, mode, and the length of
// values; the rest is the table. It is taken exactly when it is as long as docs/PROTOCOL.md,
// section 3, says, and then comes out the same when it is written again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "src/arithmetic/little_endian.h"
#include "src/base/errors.h"
#include "src/protocol/epoch_table.h"

namespace {

using namespace blindfuse;

// The hash of part i of the hint, where the document says that it is.
bool has_hash_at(const EpochTable& table, uint32_t i, std::span<const uint8_t> bytes, size_t at) {
  return std::ranges::equal(table.hint_hash(i), bytes.subspan(at, 32));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  const bool packed = data[1] % 2 == 1;
  Layout layout;
  layout.shard_count = 1 + data[0] % 8u;
  layout.row_count = 2048;
  layout.record = {
      .digest_bytes = 8, .length_bytes = 0, .value_bytes = load_le<uint16_t>(data + 2)};
  layout.lwe = find_lwe_params(packed ? "ring-2048" : "lwe-1288");
  const std::span<const uint8_t> bytes(data + 4, size - 4);
  const size_t columns = size_t{layout.shard_count} * (8 + layout.record.value_bytes);
  const size_t shards_bytes = size_t{112} * layout.shard_count;
  const size_t packs = packed ? (columns + 1023) / 1024 : 0;
  const bool right = bytes.size() == shards_bytes + 64 * packs;
  EpochTable table;
  bool refused = false;
  try {
    table = parse_epoch_table(bytes, layout);
  } catch (const InputError&) {
    refused = true;
  }
  invariant(refused != right, "refused for its length, and for nothing else");
  if (refused) return 0;
  invariant(table.shards.size() == layout.shard_count && table.packs.size() == packs,
            "an entry for every shard and every pack");
  invariant(std::ranges::equal(serialize_epoch_table(table), bytes), "the same when it is written");
  for (uint32_t i = 0; i < layout.hint_part_count(); ++i) {
    const size_t at = packed ? shards_bytes + 64 * i + 32 : 112 * i + 80;
    invariant(has_hash_at(table, i, bytes, at), "the hashes of the hint's parts");
  }
  return 0;
}
