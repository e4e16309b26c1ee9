// The public masks of a query's packing key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "src/arithmetic/ring/packing_keys.h"
#include "src/base/errors.h"

namespace blindfuse::ring {

// The masks of all digits, expanded once: 24 KiB.
class KeyMasks {
 public:
  // kDimension values for each digit, as PublicPolynomials::key_masks() has them
  // (src/protocol/public_polynomials.h).
  explicit KeyMasks(std::vector<uint32_t> words) : words_(std::move(words)) {
    invariant(words_.size() == kKeyWords, "a mask for each digit");
  }

  // The mask of digit k: values in the evaluation domain of Ntt.
  Polynomial mask(size_t k) const { return Polynomial(words_.data() + k * kDimension, kDimension); }

 private:
  std::vector<uint32_t> words_;
};

}  // namespace blindfuse::ring
