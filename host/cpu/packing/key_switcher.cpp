#include "host/cpu/packing/key_switcher.h"

#include <algorithm>
#include <utility>

namespace blindfuse {

using ring::kDigits;
using ring::kDimension;
using ring::kOrbit;
using ring::MutablePolynomial;
using ring::Polynomial;

namespace {

using Coefficients = std::array<uint32_t, kDimension>;

}  // namespace

KeySwitcher::KeySwitcher(std::vector<uint32_t> key_masks, const RingKernel& kernel)
    : ntt_(make_ntt(kernel, ring::kPackingModulus)), scaled_masks_(scaled(std::move(key_masks))) {}

std::vector<uint32_t> KeySwitcher::scaled(std::vector<uint32_t> words) const {
  scale(words);
  return words;
}

void KeySwitcher::scale(std::span<uint32_t> words) const {
  constexpr ring::PrimeField kField(ring::kPackingModulus);
  constexpr auto kTwo32 = ring::MontgomeryConstant::of(
      static_cast<uint32_t>((uint64_t{1} << 32) - ring::kPackingModulus), kField);
  for (uint32_t& word : words) word = kTwo32.times(word, kField);
}

void KeySwitcher::decompose(Polynomial mask, DigitPolynomials& digits) const {
  Coefficients coefficients;
  std::copy(mask.begin(), mask.end(), coefficients.begin());
  ntt_->inverse(coefficients);
  ntt_->decompose(coefficients, digits);
  for (Coefficients& digit : digits) ntt_->forward(digit);
}

void KeySwitcher::add_masks(const DigitPolynomials& digits, const ring::Automorphism& to,
                            MutablePolynomial next) const {
  Coefficients turned;
  for (size_t k = 0; k < kDigits; ++k) {
    ring::apply(to, scaled_masks_.mask(k), turned);
    ntt_->add_divided_products(digits[k], turned, next);
  }
}

std::vector<uint32_t> KeySwitcher::scaled_key(const uint32_t* key) const {
  return scaled({key, key + PackingKeys::kWords});
}

void KeySwitcher::add_bodies(const DigitPolynomials& digits, const ring::Automorphism& to,
                             const std::vector<uint32_t>& scaled_key, MutablePolynomial sum) const {
  Coefficients turned;
  for (size_t k = 0; k < kDigits; ++k) {
    for (size_t half = 0; half < 2; ++half) {
      const uint32_t* from = scaled_key.data() + (2 * k + half) * PackingKeys::kHalfWords;
      std::rotate_copy(from, from + to.power, from + kOrbit, turned.begin() + half * kOrbit);
    }
    ntt_->add_divided_products(digits[k], turned, sum);
  }
}

}  // namespace blindfuse
