// A query's packing key in the order in which the sums use it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "src/arithmetic/ring/packing_key_format.h"

namespace blindfuse {

class PackingKeys {
 public:
  // The bytes are those that check_packing_key does not refuse. Throws its errors.
  static PackingKeys read(std::span<const uint8_t> bytes);

  // For each digit, the halves of the orbit, of kHalfWords each. Automorphisms rotate
  // halves. The beginning of each half is repeated after its end, so that any 16 points of a
  // rotated half are contiguous.
  static constexpr size_t kHalfWords = ring::kOrbit + 16;
  static constexpr size_t kWords = ring::kDigits * 2 * kHalfWords;
  const uint32_t* words() const { return words_.data(); }

  // Writes the same words into existing memory, from bytes that have been checked.
  static void unpack(std::span<const uint8_t> bytes, std::span<uint32_t, kWords> words);

 private:
  PackingKeys() : words_(kWords) {}
  std::vector<uint32_t> words_;
};

}  // namespace blindfuse
