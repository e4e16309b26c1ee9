// The public polynomials of packed responses, expanded from a seed.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "src/chacha20.h"
#include "src/errors.h"
#include "src/ring/gadget.h"
#include "src/ring/ring_dimension.h"

namespace blindfuse::ring {

// Packing keys: of the automorphism X -> X^5, and of X -> X^-1 (InsPIRe, ePrint 2025/1352).
enum class KeyIndex : uint8_t { kFive, kMinusOne };
inline constexpr size_t kKeys = 2;

// Packing keys of one query in words: for X -> X^5 and X -> X^-1, the three digits' bodies each,
// values at the points of RingTransform; lowest byte first where they are sent.
inline constexpr size_t kKeyWords = kKeys * kDigits * kDimension;
inline constexpr size_t kKeyBytes = 4 * kKeyWords;  // 49,152

class PublicPolynomials {
 public:
  explicit PublicPolynomials(const ChaChaKey& seed) : seed_(seed) {}

  const ChaChaKey& seed() const { return seed_; }

  // a_j, which rows 2048 j .. 2048 j + 2047 are asked for with: uniform words, the first 8192 bytes
  // of the keystream with nonce j.
  void fill_block(uint32_t j, MutablePolynomial words) const;
  // Those of all blocks of so many rows, a multiple of 2048: a word a row.
  std::vector<uint32_t> blocks(uint32_t row_count) const;

  // w, the mask of digit k of a packing key: uniform modulo the packing modulus, at the points of
  // RingTransform. The words of the keystream with nonce 2^63 + 3 key + k that are below the
  // modulus, in their order.
  void fill_key_mask(KeyIndex key, size_t k, MutablePolynomial values) const;
  // All of them, kKeyWords: kDimension for each digit of each key.
  std::vector<uint32_t> key_masks() const;

 private:
  ChaChaKey seed_;
};

// The masks of all packing keys, expanded once: 48 KiB.
class KeyMasks {
 public:
  explicit KeyMasks(const PublicPolynomials& polynomials);
  // As PublicPolynomials::key_masks() has them.
  explicit KeyMasks(std::vector<uint32_t> words) : words_(std::move(words)) {
    invariant(words_.size() == kKeyWords, "a mask for each digit of each key");
  }

  // That of digit k of a key: values at the points of RingTransform.
  Polynomial mask(KeyIndex key, size_t k) const {
    return Polynomial(words_.data() + place(key, k), kDimension);
  }

 private:
  static size_t place(KeyIndex key, size_t k) {
    return (kDigits * static_cast<size_t>(key) + k) * kDimension;
  }

  std::vector<uint32_t> words_;
};

}  // namespace blindfuse::ring
