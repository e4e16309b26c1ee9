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

}  // namespace blindfuse
