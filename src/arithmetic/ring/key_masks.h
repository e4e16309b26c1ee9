// The public masks of a query's packing keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "src/arithmetic/ring/packing_keys.h"
#include "src/base/errors.h"

namespace blindfuse::ring {

// The masks of all packing keys, expanded once: 48 KiB.
class KeyMasks {
 public:
  // kDimension values for each digit of each key, as PublicPolynomials::key_masks() has them
  // (src/protocol/public_polynomials.h).
  explicit KeyMasks(std::vector<uint32_t> words) : words_(std::move(words)) {
    invariant(words_.size() == kKeyWords, "a mask for each digit of each key");
  }

  // The mask of digit k of a key: values in the evaluation domain of Ntt.
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
