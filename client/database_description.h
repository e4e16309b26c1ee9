// A client's description of one epoch of a database: its manifest and the tables of its shards and
// packs, checked. It determines the place of a key.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/protocol/epoch_table.h"
#include "src/protocol/key_hash.h"
#include "src/protocol/manifest.h"

namespace blindfuse {

// The shard, rows and digest of a key. Reveals as much as the key itself: kept in a SecretBuffer.
struct KeyPlace {
  uint32_t shard = 0;
  // 1. Or 0, and its rows are not asked for, so that nothing is found: an index beyond the end, or
  // a bucket without a key.
  uint32_t asks = 0;
  std::array<uint32_t, kArityMax> rows{};  // Layout::arity of them
  std::array<uint8_t, kDigestBytesMax> digest{};
};

class DatabaseDescription {
 public:
  // table_bytes: as serialize_epoch_table() makes them. Throws InputError if the manifest is not
  // valid, or if the hash of the tables is not the manifest's.
  DatabaseDescription(std::string_view manifest_text, std::span<const uint8_t> table_bytes);

  const Layout& layout() const { return parsed_.manifest.layout; }
  const Manifest& manifest() const { return parsed_.manifest; }
  const EpochId& epoch() const { return parsed_.epoch; }
  const ShardTable& table() const { return table_.shards; }
  const EpochTable& epoch_table() const { return table_; }

  // The place of a key: a byte string in a keyword database, a decimal number in an index database.
  // Throws InputError for a key that is too long, or not a decimal number. Not for a database with
  // requests for several keys, where a key has a place in each of its buckets.
  KeyPlace place(std::string_view key) const;
  // The place of entry i of an index database. Throws InputError in a keyword database.
  KeyPlace place(uint64_t i) const;

  // The hash of a key of a keyword database. Throws InputError for a key that is too long.
  KeyHash hash(std::string_view key) const;
  // The place of a key of a keyword database in a bucket, which should be one of its own. There is
  // bucket 0 alone if requests are not for several keys.
  KeyPlace place(const KeyHash& hash, uint32_t bucket) const;

  // Throws InputError for a key that is too long, or not a decimal number in an index database.
  void check(std::string_view key) const;

  // The value in a decoded record, or nothing if the key of this place is not there.
  std::optional<std::string> value_in(std::span<const uint8_t> record, const KeyPlace& place) const;

 private:
  ParsedManifest parsed_;
  EpochTable table_;
};

// Parses digits without superfluous zeros. Numbers above 2^64 - 1 become 2^64 - 1. Throws
// InputError for any other text.
uint64_t parse_index(std::string_view text);

}  // namespace blindfuse
