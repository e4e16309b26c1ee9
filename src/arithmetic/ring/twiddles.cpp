#include "src/arithmetic/ring/twiddles.h"

#include <bit>

#include "src/base/errors.h"

namespace blindfuse::ring {
namespace {

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

uint32_t root_of_unity(const PrimeField& field) {
  const uint32_t modulus = field.modulus();
  invariant(modulus % kOrder == 1, "the modulus is 1 modulo 4096");
  for (uint32_t g = 2; g < 1000; ++g) {
    const uint32_t w = field.power(g, (modulus - 1) / kOrder);
    // Its order divides 4096, and is no smaller power of two.
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

}  // namespace blindfuse::ring
