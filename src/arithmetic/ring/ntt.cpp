#include "src/arithmetic/ring/ntt.h"

#include <algorithm>
#include <array>
#include <bit>

#include "src/base/errors.h"

namespace blindfuse::ring {

namespace {

class PortableNtt final : public Ntt {
 public:
  explicit PortableNtt(uint32_t modulus) : Ntt(modulus), twiddles_(field_) {}

  void forward(MutablePolynomial polynomial) const override {
    std::array<uint32_t, kDimension> x;
    std::copy(polynomial.begin(), polynomial.end(), x.begin());
    for (size_t blocks = 1, gap = kDimension / 2; gap > 0; blocks *= 2, gap /= 2) {
      for (size_t block = 0; block < blocks; ++block) {
        const MontgomeryConstant twiddle = twiddles_.forward[blocks + block];
        uint32_t* low = x.data() + 2 * block * gap;
        for (size_t i = 0; i < gap; ++i) {
          const uint32_t turned = twiddle.times(low[i + gap], field_);
          low[i + gap] = field_.subtract(low[i], turned);
          low[i] = field_.add(low[i], turned);
        }
      }
    }
    const auto& orbit_order = Twiddles::orbit_order();
    for (size_t k = 0; k < kDimension; ++k) polynomial[k] = x[orbit_order[k]];
    clear(x);
  }

  void inverse(MutablePolynomial polynomial) const override {
    std::array<uint32_t, kDimension> x;
    const auto& orbit_order = Twiddles::orbit_order();
    for (size_t k = 0; k < kDimension; ++k) x[orbit_order[k]] = polynomial[k];
    for (size_t blocks = kDimension / 2, gap = 1; blocks > 0; blocks /= 2, gap *= 2) {
      for (size_t block = 0; block < blocks; ++block) {
        const MontgomeryConstant twiddle = twiddles_.inverse[blocks + block];
        uint32_t* low = x.data() + 2 * block * gap;
        for (size_t i = 0; i < gap; ++i) {
          const uint32_t difference = field_.subtract(low[i], low[i + gap]);
          low[i] = field_.add(low[i], low[i + gap]);
          low[i + gap] = twiddle.times(difference, field_);
        }
      }
    }
    for (size_t i = 0; i < kDimension; ++i) polynomial[i] = twiddles_.scale.times(x[i], field_);
    clear(x);
  }

  void add_products(Polynomial a, Polynomial b, MutablePolynomial sum) const override {
    for (size_t i = 0; i < kDimension; ++i) {
      sum[i] = field_.add(sum[i], field_.multiply(a[i], b[i]));
    }
  }

 private:
  // Clients transform secrets, and no part of them may stay on the stack.
  static void clear(std::array<uint32_t, kDimension>& x) {
    x.fill(0);
    asm volatile("" : : "r"(x.data()) : "memory");
  }

  const Twiddles twiddles_;
};

constexpr unsigned kLevels = std::bit_width(kDimension) - 1;

// The bits of i, the lowest first.
constexpr uint32_t reversed(uint32_t i) {
  uint32_t result = 0;
  for (unsigned bit = 0; bit < kLevels; ++bit) result |= (i >> bit & 1) << (kLevels - 1 - bit);
  return result;
}

// Factor i is root^(reversed i).
std::vector<MontgomeryConstant> factors(const PrimeField& field, uint32_t root) {
  std::vector<MontgomeryConstant> made(kDimension);
  uint32_t power = 1;
  for (uint32_t i = 0; i < kDimension; ++i) {
    made[reversed(i)] = MontgomeryConstant::of(power, field);
    power = field.multiply(power, root);
  }
  return made;
}

std::array<uint16_t, kDimension> make_orbit_order() {
  std::array<uint16_t, kDimension> made{};
  uint32_t exponent = 1;
  for (size_t k = 0; k < kOrbit; ++k) {
    // The butterflies leave the value at w^(2 i + 1) in place reversed(i).
    made[k] = static_cast<uint16_t>(reversed(exponent / 2));
    made[kOrbit + k] = static_cast<uint16_t>(reversed((kOrder - exponent) / 2));
    exponent = exponent * 5 % kOrder;
  }
  return made;
}

}  // namespace

std::unique_ptr<const Ntt> portable_ntt(uint32_t modulus) {
  return std::make_unique<const PortableNtt>(modulus);
}

uint32_t root_of_unity(const PrimeField& field) {
  const uint32_t modulus = field.modulus();
  invariant(modulus % kOrder == 1, "the modulus is 1 modulo 4096");
  for (uint32_t g = 2; g < 1000; ++g) {
    const uint32_t w = field.power(g, (modulus - 1) / kOrder);
    // The order of w divides 4096. w^2048 is not 1, so the order is 4096.
    if (field.power(w, kDimension) == modulus - 1) return w;
  }
  abort_broken_invariant("the modulus is prime", __FILE__, __LINE__);
}

Twiddles::Twiddles(const PrimeField& field)
    : forward(factors(field, root_of_unity(field))),
      inverse(factors(field, field.inverse(root_of_unity(field)))),
      scale(MontgomeryConstant::of(field.inverse(kDimension), field)) {}

const std::array<uint16_t, kDimension>& Twiddles::orbit_order() {
  static const std::array<uint16_t, kDimension> all = make_orbit_order();
  return all;
}

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
