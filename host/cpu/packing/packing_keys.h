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

// Throws BadInput when there are not kKeyBytes bytes, and for a word that is not below the packing
// modulus.
void check_packing_keys(std::span<const uint8_t> bytes);

class PackingKeys {
 public:
  // Of bytes that check_packing_keys does not refuse; throws what it does.
  static PackingKeys read(std::span<const uint8_t> bytes);

  // For each key and digit the halves of the orbit, of kHalfWords each: automorphisms turn halves,
  // and the beginning of each is repeated behind its end, so that any 16 points of a turned half
  // are contiguous.
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
