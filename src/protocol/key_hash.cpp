#include "src/protocol/key_hash.h"

#include <algorithm>

#include "src/arithmetic/little_endian.h"

namespace blindfuse {

KeyHash KeyHasher::operator()(std::string_view key) {
  hash_.update("blindfuse/key/1");
  hash_.update(salt_);
  hash_.update(key);
  const Sha256Digest h = hash_.finish();
  KeyHash result;
  result.shard_hash = load_le<uint64_t>(h.data());
  result.slot_hash = load_le<uint64_t>(h.data() + 8);
  std::copy_n(h.data() + 16, result.digest.size(), result.digest.data());
  return result;
}

KeyHash key_hash(const Salt& salt, std::string_view key) { return KeyHasher(salt)(key); }

BucketChoice BucketChooser::operator()(const KeyHash& hash) {
  std::array<uint8_t, 32> bytes;
  store_le(bytes.data(), hash.shard_hash);
  store_le(bytes.data() + 8, hash.slot_hash);
  std::copy(hash.digest.begin(), hash.digest.end(), bytes.begin() + 16);
  hash_.update("blindfuse/buckets/1");
  hash_.update(bytes);
  const Sha256Digest chosen = hash_.finish();
  // Each word picks one of the buckets that are left: number i of those without the chosen ones.
  const auto pick = [&](size_t i) {
    const uint64_t word = load_le<uint64_t>(chosen.data() + 8 * i);
    return static_cast<uint32_t>(mulhi(word, bucket_count_ - static_cast<uint32_t>(i)));
  };
  const uint32_t first = pick(0);
  uint32_t second = pick(1);
  second += static_cast<uint32_t>(second >= first);
  uint32_t third = pick(2);
  third += static_cast<uint32_t>(third >= std::min(first, second));
  third += static_cast<uint32_t>(third >= std::max(first, second));
  return {first, second, third};
}

}  // namespace blindfuse
