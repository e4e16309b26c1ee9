#include "host/cpu/packing/scaled_key.h"

#include <algorithm>

#include "src/arithmetic/ring/prime_field.h"

namespace blindfuse {

using ring::kDigits;
using ring::kOrbit;

namespace {

constexpr size_t kTwiceWords = 2 * kOrbit;  // of a half

}  // namespace

void multiply_by_two32(std::span<uint32_t> words) {
  constexpr ring::PrimeField kField(ring::kPackingModulus);
  constexpr auto kTwo32 = ring::MontgomeryConstant::of(
      static_cast<uint32_t>((uint64_t{1} << 32) - ring::kPackingModulus), kField);
  for (uint32_t& word : words) word = kTwo32.times(word, kField);
}

ScaledKey::ScaledKey(const uint32_t* values, size_t half_pitch)
    : words_(kDigits * 2 * kTwiceWords) {
  uint32_t* to = words_.data();
  for (size_t half = 0; half < kDigits * 2; ++half, to += kTwiceWords, values += half_pitch) {
    std::copy_n(values, kOrbit, to);
    multiply_by_two32({to, kOrbit});
    std::copy_n(to, kOrbit, to + kOrbit);
  }
}

void ScaledKey::add_products(const KeySwitchNtt& ntt, const DigitPolynomials& digits,
                             const ring::Automorphism& to, ring::MutablePolynomial sum) const {
  for (size_t half = 0; half < 2; ++half) {
    DigitProducts products;
    for (size_t k = 0; k < kDigits; ++k) {
      products.digits[k] = digits[k].data() + half * kOrbit;
      products.keys[k] = words_.data() + (2 * k + half) * kTwiceWords + to.power;
    }
    products.sum = sum.data() + half * kOrbit;
    ntt.add_digit_products(products);
  }
}

}  // namespace blindfuse
