#include "src/arithmetic/ring/crt_ntt.h"

#include <algorithm>

namespace blindfuse::ring {
namespace {

template <typename Number>
void forward(const Ntt& ntt, std::span<const Number, kDimension> numbers, MutablePolynomial out) {
  for (size_t i = 0; i < kDimension; ++i) {
    out[i] = ntt.field().reduce_signed(static_cast<int32_t>(numbers[i]));
  }
  ntt.forward(out);
}

}  // namespace

void CrtNtt::forward_words(Polynomial words, CrtResidues& out) const {
  forward(*first_, words, MutablePolynomial(out.first));
  forward(*second_, words, MutablePolynomial(out.second));
}

void CrtNtt::forward_small(std::span<const int8_t, kDimension> numbers, CrtResidues& out) const {
  forward(*first_, numbers, MutablePolynomial(out.first));
  forward(*second_, numbers, MutablePolynomial(out.second));
}

void CrtNtt::add_product(const CrtResidues& a, const CrtResidues& b, CrtResidues& sum) const {
  first_->add_products(a.first, b.first, sum.first);
  second_->add_products(a.second, b.second, sum.second);
}

void CrtNtt::conjugate(CrtResidues& values) {
  for (auto* each : {&values.first, &values.second}) {
    std::rotate(each->begin(), each->begin() + kOrbit, each->end());
  }
}

void CrtNtt::to_words(CrtResidues& sum, MutablePolynomial words) const {
  first_->inverse(sum.first);
  second_->inverse(sum.second);
  constexpr uint64_t kBoth = static_cast<uint64_t>(kPackingModulus) * kSecondModulus;
  const PrimeField& second = second_->field();
  const uint32_t inverse = second.inverse(second.reduce(kPackingModulus));
  for (size_t i = 0; i < kDimension; ++i) {
    // Garner's formula: the one number below both primes' product with these two remainders.
    const uint32_t first = sum.first[i];
    const uint32_t apart = second.subtract(sum.second[i], second.subtract(first, kSecondModulus));
    const uint64_t number =
        first + static_cast<uint64_t>(kPackingModulus) * second.multiply(apart, inverse);
    // The upper half stands for negative numbers. No branch: the number may be a secret.
    const auto negative = static_cast<uint32_t>((kBoth / 2 - number) >> 63);
    words[i] = static_cast<uint32_t>(number) - (static_cast<uint32_t>(kBoth) & (0u - negative));
  }
}

}  // namespace blindfuse::ring
