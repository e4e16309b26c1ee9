// The filter seeds that a build tries.
#pragma once

#include <cstdint>

#include "src/protocol/chacha20.h"
#include "src/system/random.h"

namespace blindfuse {

// For every shard a sequence of independent, uniform, unpredictable seeds: ChaCha20 under a key
// that is drawn for one build, with shard and try as its nonce. Threads may take the shards in any
// order: equal keys give equal seeds.
class FilterSeeds {
 public:
  // Draws the key, 32 bytes.
  explicit FilterSeeds(const RandomSource& random);
  // Wipes it: it tells the seeds that shards still to be built will have.
  ~FilterSeeds();
  FilterSeeds(const FilterSeeds&) = delete;
  FilterSeeds& operator=(const FilterSeeds&) = delete;

  // The seed of try 0, 1, 2, ... of a shard. Any thread.
  uint64_t seed(uint32_t shard, uint32_t attempt) const;

 private:
  ChaChaKey key_{};
};

}  // namespace blindfuse
