// The hash of a key, which determines the key's place: one cryptographic hash a key
// (docs/PROTOCOL.md, section 4).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "src/arithmetic/layout.h"
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

// The buckets of a key, where requests are for several keys (docs/PROTOCOL.md, section 21).
using BucketChoice = std::array<uint32_t, kBucketChoices>;

// Chooses buckets by SHA-256("blindfuse/buckets/1" || h), where h is the hash of a key as it is in
// KeyHash. So a key's buckets do not depend on its shard, rows and digest. The time does not depend
// on the hash. One thread at a time.
class BucketChooser {
 public:
  // bucket_count is at least kBucketChoices.
  explicit BucketChooser(uint32_t bucket_count) : bucket_count_(bucket_count) {}

  // Returns three different buckets, below bucket_count.
  BucketChoice operator()(const KeyHash& hash);

 private:
  uint32_t bucket_count_;
  Sha256 hash_;
};

// The shard of a key in one of its buckets. bucket_shard_count: shards of a bucket.
constexpr uint32_t shard_in_bucket(uint64_t shard_hash, uint32_t bucket,
                                   uint32_t bucket_shard_count) {
  return bucket * bucket_shard_count + shard_of(shard_hash, bucket_shard_count);
}

}  // namespace blindfuse
