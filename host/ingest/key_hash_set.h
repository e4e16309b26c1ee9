// The set of keys that have come, by their hashes.
#pragma once

#include <cstdint>
#include <vector>

#include "src/protocol/key_hash.h"

namespace blindfuse {

// Different hashes, numbered 0, 1, 2, ... in the order in which they came. There may be fewer than
// 2^32. The set takes 40 to 80 bytes a hash, however often each comes.
class KeyHashSet {
 public:
  KeyHashSet();

  struct Place {
    uint32_t number;  // of this hash
    bool is_new;      // it was not there before
  };
  Place insert(const KeyHash& hash);

  uint32_t size() const { return static_cast<uint32_t>(hashes_.size()); }

  // Removes all hashes, and keeps the memory.
  void clear();

 private:
  size_t home_of(const KeyHash& hash) const;
  void grow();

  std::vector<KeyHash> hashes_;
  std::vector<uint32_t> slots_;  // open addressing, at most half full: a number, or kFree
};

}  // namespace blindfuse
