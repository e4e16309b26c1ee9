#include "host/publish/filter_seeds.h"

#include <string.h>  // explicit_bzero

#include <array>

namespace blindfuse {

FilterSeeds::FilterSeeds(const RandomSource& random) { random(key_); }

FilterSeeds::~FilterSeeds() { explicit_bzero(key_.data(), key_.size()); }

uint64_t FilterSeeds::seed(uint32_t shard, uint32_t attempt) const {
  std::array<uint32_t, 2> words{};
  chacha20_keystream(key_, uint64_t{attempt} << 32 | shard, words);
  return uint64_t{words[1]} << 32 | words[0];
}

}  // namespace blindfuse
