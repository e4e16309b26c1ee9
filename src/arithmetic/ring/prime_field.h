// Integers modulo a prime below 2^32.
#pragma once

#include <cstdint>

namespace blindfuse::ring {

// The modulus of packed responses: the largest prime below 2^32 that is 1 modulo 4096, so that
// polynomials of ring_dimension.h have 2048 points in it.
inline constexpr uint32_t kPackingModulus = 4294955009;
// The next such prime. With the first it tells exact products apart: together they are just under
// 2^64.
inline constexpr uint32_t kSecondModulus = 4294914049;

// All values are reduced, 0 .. modulus - 1, unless a function says otherwise. Additions, products
// and reduce_signed take the same time whatever they are given, as secrets go through them; reduce,
// power, inverse and centered do not.
class PrimeField {
 public:
  // modulus: an odd prime in 2^31 .. 2^32 - 1; not checked.
  explicit constexpr PrimeField(uint32_t modulus) : modulus_(modulus) {
    // Newton's iteration for 1 / modulus modulo 2^32; odd numbers are their own inverses modulo 8.
    inverse_ = modulus;
    for (int i = 0; i < 4; ++i) inverse_ *= 2 - modulus * inverse_;
    const uint64_t two32 = (uint64_t{1} << 32) - modulus;
    two64_ = static_cast<uint32_t>(two32 * two32 % modulus);
  }

  constexpr uint32_t modulus() const { return modulus_; }
  // 1 / modulus modulo 2^32.
  constexpr uint32_t inverse_of_modulus() const { return inverse_; }

  constexpr uint32_t reduce(uint64_t x) const { return static_cast<uint32_t>(x % modulus_); }
  constexpr uint32_t reduce_signed(int32_t x) const {
    return static_cast<uint32_t>(x) + (static_cast<uint32_t>(x >> 31) & modulus_);
  }

  constexpr uint32_t add(uint32_t a, uint32_t b) const { return subtract(a, modulus_ - b); }
  // b may be the modulus, too.
  constexpr uint32_t subtract(uint32_t a, uint32_t b) const {
    const uint64_t difference = static_cast<uint64_t>(a) - b;
    return static_cast<uint32_t>(difference) + (static_cast<uint32_t>(difference >> 32) & modulus_);
  }
  // x / 2^32, for x below 2^32 times the modulus (Montgomery, Modular multiplication without trial
  // division, 1985).
  constexpr uint32_t redc(uint64_t x) const {
    const uint32_t multiple = static_cast<uint32_t>(x) * inverse_;
    return subtract(static_cast<uint32_t>(x >> 32),
                    static_cast<uint32_t>((static_cast<uint64_t>(multiple) * modulus_) >> 32));
  }
  constexpr uint32_t multiply(uint32_t a, uint32_t b) const {
    return redc(static_cast<uint64_t>(redc(static_cast<uint64_t>(a) * b)) * two64_);
  }
  constexpr uint32_t power(uint32_t base, uint64_t exponent) const {
    uint32_t result = 1;
    for (; exponent != 0; exponent >>= 1) {
      if (exponent & 1) result = multiply(result, base);
      base = multiply(base, base);
    }
    return result;
  }
  constexpr uint32_t inverse(uint32_t a) const { return power(a, modulus_ - 2); }

  // The number in -modulus/2 .. modulus/2 that is a modulo the modulus.
  constexpr int64_t centered(uint32_t a) const {
    return a > modulus_ / 2 ? static_cast<int64_t>(a) - modulus_ : a;
  }

 private:
  uint32_t modulus_;
  uint32_t inverse_;
  uint32_t two64_;  // 2^64 modulo the modulus
};

// A constant to multiply with, in Montgomery form: redc takes the factor of 2^32 away again. Its
// quotient by the modulus is made beforehand, so that both products of a multiplication begin at
// once (Seiler, ePrint 2018/039, section 2.2).
struct MontgomeryConstant {
  uint32_t value;   // w * 2^32 modulo the modulus
  uint32_t scaled;  // value / modulus modulo 2^32

  static constexpr MontgomeryConstant of(uint32_t w, const PrimeField& field) {
    const uint32_t value = field.reduce(static_cast<uint64_t>(w) << 32);
    return {value, value * field.inverse_of_modulus()};
  }
  // x * w, for any x below 2^32.
  constexpr uint32_t times(uint32_t x, const PrimeField& field) const {
    const uint64_t multiple = x * scaled;
    return field.subtract(static_cast<uint32_t>((static_cast<uint64_t>(x) * value) >> 32),
                          static_cast<uint32_t>((multiple * field.modulus()) >> 32));
  }
};

}  // namespace blindfuse::ring
