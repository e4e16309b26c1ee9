// The filter seeds that a build tries.
#pragma once

#include <cstdint>

#include "src/protocol/chacha20.h"
#include "src/system/random.h"

namespace blindfuse {

// A sequence of independent, uniform, unpredictable seeds for every shard: ChaCha20 under a key
// that is drawn for one build, with shard and try as its nonce. Equal keys give equal seeds, so
// threads may take the shards in any order.
class FilterSeeds {
 public:
  // Draws the key, 32 bytes.
  explicit FilterSeeds(const RandomSource& random);
  // Wipes the key: it determines the seeds of shards that are still to be built.
  ~FilterSeeds();
  FilterSeeds(const FilterSeeds&) = delete;
  FilterSeeds& operator=(const FilterSeeds&) = delete;

  // The seed of try 0, 1, 2, ... of a shard. Any thread.
  uint64_t seed(uint32_t shard, uint32_t attempt) const;

 private:
  ChaChaKey key_{};
};

}  // namespace blindfuse
