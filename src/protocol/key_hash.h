// The hash of a key, which determines the key's place: one cryptographic hash a key
// (docs/PROTOCOL.md, section 4).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "src/arithmetic/public_divisor.h"
#include "src/protocol/sha256.h"

namespace blindfuse {

inline constexpr uint64_t kKeyBytesMax = 65'536;
inline constexpr size_t kSaltBytes = 16;

using Salt = std::array<uint8_t, kSaltBytes>;

// The parts of h = SHA-256("blindfuse/key/1" || salt || key).
struct KeyHash {
  uint64_t shard_hash = 0;           // x0: picks the shard
  uint64_t slot_hash = 0;            // x1: picks the rows, mixed with the shard's filter seed
  std::array<uint8_t, 16> digest{};  // its first digest_bytes bytes begin the record

  auto operator<=>(const KeyHash&) const = default;
};

KeyHash key_hash(const Salt& salt, std::string_view key);

// Hashes many keys under one salt, without setting up a context for each. One thread at a time.
class KeyHasher {
 public:
  explicit KeyHasher(const Salt& salt) : salt_(salt) {}
  KeyHash operator()(std::string_view key);

 private:
  Salt salt_;
  Sha256 hash_;
};

// The shard of a key, 0 .. shard_count-1: monotone in shard_hash. shard_count is at least 1.
constexpr uint32_t shard_of(uint64_t shard_hash, uint32_t shard_count) {
  return static_cast<uint32_t>(mulhi(shard_hash, shard_count));
}

}  // namespace blindfuse
