// The public polynomials of packed responses, expanded from a seed.
#pragma once

#include <cstdint>
#include <vector>

#include "src/arithmetic/layout.h"
#include "src/arithmetic/ring/packing_key_format.h"
#include "src/arithmetic/second_level_spec.h"
#include "src/protocol/chacha20.h"

namespace blindfuse::ring {

class PublicPolynomials {
 public:
  explicit PublicPolynomials(const ChaChaKey& seed) : seed_(seed) {}

  const ChaChaKey& seed() const { return seed_; }

  // a_j, the mask of the query's rows 2048 j .. 2048 j + 2047 for one bucket: uniform words, the
  // first 8192 bytes of the keystream with nonce 2^32 bucket + j. bucket: below 2^31; 0 if requests
  // are not for several keys.
  void fill_block(uint32_t bucket, uint32_t j, MutablePolynomial words) const;
  void fill_block(uint32_t j, MutablePolynomial words) const { fill_block(0, j, words); }
  // The polynomials of all blocks of this many rows, a multiple of 2048: one word a row.
  std::vector<uint32_t> blocks(uint32_t row_count, uint32_t bucket = 0) const;

  // w, the mask of digit k of the packing key: uniform modulo the packing modulus, in the
  // evaluation domain of Ntt. These are the words of the keystream with nonce 2^63 + k that are
  // below the modulus, in their order.
  void fill_key_mask(size_t k, MutablePolynomial values) const;
  // The masks of all digits: kKeyWords words, kDimension for each.
  std::vector<uint32_t> key_masks() const;

  // The mask of digit k of the second level's short key, made as above with nonces from 2^63 + 3
  // on.
  void fill_short_key_mask(size_t k, MutablePolynomial values) const;
  std::vector<uint32_t> short_key_masks() const;
  // a2_j, the mask of the second level's rows 2048 j .. 2048 j + 2047: as a key's mask, with nonce
  // 2^63 + 2^32 + j.
  void fill_second_block(uint32_t j, MutablePolynomial values) const;
  // Returns the masks of this many rows: 2048 words for each 2048 rows.
  std::vector<uint32_t> second_blocks(uint32_t row_count) const;

 private:
  void fill_values(uint64_t nonce, MutablePolynomial values) const;

  ChaChaKey seed_;
};

}  // namespace blindfuse::ring

namespace blindfuse {

// The public polynomials of a layout's second level (docs/PROTOCOL.md, section 20).
struct SecondLevelPolynomials {
  // The layout has a second level.
  SecondLevelPolynomials(const Layout& layout, const ring::PublicPolynomials& polynomials)
      : blocks(polynomials.second_blocks(layout.second_row_count())),
        key_masks(layout.second->key_order > 0 ? polynomials.short_key_masks()
                                               : polynomials.key_masks()) {}

  // The result is valid as long as this object.
  SecondLevelSpec spec(const Layout& layout) const {
    return second_level_spec(layout, blocks, key_masks);
  }

  const std::vector<uint32_t> blocks;     // a2_j for each 2048 rows
  const std::vector<uint32_t> key_masks;  // of the key that packs rows
};

}  // namespace blindfuse
