// The buckets of a key, where requests are for several keys (docs/PROTOCOL.md, section 21).
#pragma once

#include <array>
#include <cstdint>

#include "src/arithmetic/layout.h"
#include "src/protocol/key_hash.h"
#include "src/protocol/sha256.h"

namespace blindfuse {

using BucketChoice = std::array<uint32_t, kBucketChoices>;

// Chooses buckets by SHA-256("blindfuse/buckets/1" || h), where h is the hash of a key as it is in
// KeyHash. So a key's buckets do not depend on its shard, rows and digest. The time does not depend
// on the hash. One thread at a time.
class BucketChooser {
 public:
  // bucket_count is at least kBucketChoices.
  explicit BucketChooser(uint32_t bucket_count) : bucket_count_(bucket_count) {}

  // Three different buckets, below bucket_count.
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
