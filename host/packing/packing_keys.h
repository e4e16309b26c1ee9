// A client's packing keys as its query brings them: encryptions of automorphisms of a secret that
// serves this query alone.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "src/ring/gadget.h"
#include "src/ring/public_polynomials.h"
#include "src/ring/ring_dimension.h"

namespace blindfuse {

// Keys of one query in words: for X -> X^5 and X -> X^-1, the three digits' bodies each, values at
// the points of RingTransform.
inline constexpr size_t kKeyWords = ring::kKeys * ring::kDigits * ring::kDimension;
inline constexpr size_t kKeyBytes = 4 * kKeyWords;  // 49,152

class PackingKeys {
 public:
  // Of kKeyBytes bytes, words with the lowest byte first. BadInput for another length, and for a
  // word that is not below the packing modulus.
  static PackingKeys read(std::span<const uint8_t> bytes);

  // For each key and digit the halves of the orbit, of kHalfWords each: automorphisms turn halves,
  // and the beginning of each is repeated behind its end, so that any 16 points of a turned half
  // are contiguous.
  static constexpr size_t kHalfWords = ring::kOrbit + 16;
  const uint32_t* words() const { return words_.data(); }

 private:
  PackingKeys() : words_(ring::kKeys * ring::kDigits * 2 * kHalfWords) {}
  std::vector<uint32_t> words_;
};

}  // namespace blindfuse
