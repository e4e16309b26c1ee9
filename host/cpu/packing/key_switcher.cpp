#include "host/cpu/packing/key_switcher.h"

#include <algorithm>
#include <array>

#include "src/arithmetic/ring/packing_key_format.h"
#include "src/base/errors.h"

namespace blindfuse {

using ring::kDimension;
using ring::kOrbit;
using ring::Polynomial;

namespace {

using Coefficients = std::array<uint32_t, kDimension>;

const uint32_t* whole_masks(const std::vector<uint32_t>& words) {
  invariant(words.size() == ring::kKeyWords, "a mask for each digit");
  return words.data();
}

}  // namespace

KeySwitcher::KeySwitcher(const std::vector<uint32_t>& key_masks, const RingKernel& kernel)
    : ntt_(make_ntt(kernel, ring::kPackingModulus)), masks_(whole_masks(key_masks), kOrbit) {}

void KeySwitcher::decompose(Polynomial mask, DigitPolynomials& digits) const {
  Coefficients coefficients;
  std::copy(mask.begin(), mask.end(), coefficients.begin());
  ntt_->inverse(coefficients);
  ntt_->decompose(coefficients, digits);
  for (Coefficients& digit : digits) ntt_->forward(digit);
}

}  // namespace blindfuse
