// A query's packing keys in the order in which sums are made with them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "src/arithmetic/ring/packing_keys.h"

namespace blindfuse {

class PackingKeys {
 public:
  // Of bytes that check_packing_keys does not refuse; throws what it does.
  static PackingKeys read(std::span<const uint8_t> bytes);

  // For each key and digit the halves of the orbit, of kHalfWords each: automorphisms turn halves,
  // and the beginning of each is repeated after its end, so that any 16 points of a turned half are
  // contiguous.
  static constexpr size_t kHalfWords = ring::kOrbit + 16;
  static constexpr size_t kWords = ring::kKeys * ring::kDigits * 2 * kHalfWords;
  const uint32_t* words() const { return words_.data(); }

  // The same words into memory that is there already, of bytes that have been checked.
  static void unpack(std::span<const uint8_t> bytes, std::span<uint32_t, kWords> words);

 private:
  PackingKeys() : words_(kWords) {}
  std::vector<uint32_t> words_;
};

}  // namespace blindfuse
