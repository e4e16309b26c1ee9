#include "client/database_description.h"

#include <algorithm>
#include <limits>

#include "src/arithmetic/public_divisor.h"
#include "src/base/errors.h"
#include "src/protocol/key_hash.h"

namespace blindfuse {

DatabaseDescription::DatabaseDescription(std::string_view manifest_text,
                                         std::span<const uint8_t> table_bytes)
    : parsed_(parse_manifest(manifest_text)) {
  if (sha256(table_bytes) != parsed_.manifest.table) {
    throw InputError("the table is not the one that the manifest names");
  }
  table_ = parse_epoch_table(table_bytes, layout());
}

KeyPlace DatabaseDescription::place(std::string_view key) const {
  if (layout().kind == DatabaseKind::kIndex) return place(parse_index(key));
  invariant(!layout().batch, "a key has a place in each of its buckets");
  return place(hash(key), 0);
}

KeyHash DatabaseDescription::hash(std::string_view key) const {
  invariant(layout().kind == DatabaseKind::kKeyword, "keys are byte strings");
  check(key);
  return key_hash(manifest().salt, key);
}

void DatabaseDescription::check(std::string_view key) const {
  if (layout().kind == DatabaseKind::kIndex) {
    static_cast<void>(parse_index(key));
    return;
  }
  if (key.size() > kKeyBytesMax) {
    throw InputError("a key of " + std::to_string(key.size()) + " bytes; keys have at most " +
                     std::to_string(kKeyBytesMax));
  }
}

KeyPlace DatabaseDescription::place(const KeyHash& hash, uint32_t bucket) const {
  KeyPlace place;
  place.shard = shard_in_bucket(hash.shard_hash, bucket, layout().bucket_shard_count());
  place.asks = 1;
  place.rows = fuse_rows(layout().fuse(), table()[place.shard].filter_seed, hash.slot_hash);
  place.digest = hash.digest;
  return place;
}

KeyPlace DatabaseDescription::place(uint64_t i) const {
  if (layout().kind != DatabaseKind::kIndex) {
    throw InputError("this database is asked by key, not by number");
  }
  const IndexPlace index = index_place(i, PublicDivisor(layout().shard_count));
  KeyPlace place;
  place.shard = index.shard;
  if (i < layout().key_count) {
    place.asks = 1;
    place.rows[0] = index.row;
  }
  return place;
}

std::optional<std::string> DatabaseDescription::value_in(std::span<const uint8_t> record,
                                                         const KeyPlace& place) const {
  std::optional<std::string> value = decode_record(layout().record, place.digest, record);
  // A place without rows asks for a record of zeros, which may well read as an empty value.
  if (place.asks == 0) value.reset();
  return value;
}

uint64_t parse_index(std::string_view text) {
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(),
                                                   [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || (text.size() > 1 && text[0] == '0')) {
    throw InputError("this database is asked by number: 0, 1, 2, ... in decimal digits");
  }
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  // (kMax - digit) / 10 would not do: WebAssembly would divide, in a time that depends on the
  // digit.
  constexpr uint64_t kTensMax = kMax / 10, kLastDigitMax = kMax % 10;
  uint64_t number = 0;
  for (char c : text) {
    const auto digit = static_cast<uint64_t>(c - '0');
    if (number > kTensMax || (number == kTensMax && digit > kLastDigitMax)) return kMax;
    number = number * 10 + digit;
  }
  return number;
}

}  // namespace blindfuse
