// The ring by its definitions, slow and plain: what every faster way is compared with.
#pragma once

#include <array>
#include <cstdint>
#include <random>

#include "src/arithmetic/ring/prime_field.h"
#include "src/arithmetic/ring/ring_dimension.h"

namespace blindfuse::ring::plain {

using Coefficients = std::array<uint32_t, kDimension>;

inline Coefficients random_coefficients(uint64_t seed, uint64_t bound) {
  std::mt19937_64 generator(seed);
  Coefficients made;
  for (uint32_t& each : made) each = static_cast<uint32_t>(generator() % bound);
  return made;
}

// a b modulo X^d + 1 and a modulus up to 2^32, term by term: X^d = -1.
inline Coefficients product(const Coefficients& a, const Coefficients& b, uint64_t modulus) {
  Coefficients result{};
  for (size_t i = 0; i < kDimension; ++i) {
    for (size_t j = 0; j < kDimension; ++j) {
      const uint64_t term = static_cast<uint64_t>(a[i]) * b[j] % modulus;
      uint32_t& place = result[(i + j) % kDimension];
      const uint64_t signed_term = i + j < kDimension ? term : (modulus - term) % modulus;
      place = static_cast<uint32_t>((place + signed_term) % modulus);
    }
  }
  return result;
}

// X -> X^g for g = 5^power modulo 4096.
inline Coefficients moved(const Coefficients& a, size_t power, uint64_t modulus) {
  uint32_t g = 1;
  for (size_t i = 0; i < power; ++i) g = g * 5 % kOrder;
  Coefficients result;
  for (uint32_t i = 0; i < kDimension; ++i) {
    const uint32_t place = i * g % kOrder;
    const uint64_t value = place < kDimension ? a[i] : (modulus - a[i]) % modulus;
    result[place % kDimension] = static_cast<uint32_t>(value);
  }
  return result;
}

// X -> X^-1.
inline Coefficients conjugated(const Coefficients& a, uint64_t modulus) {
  Coefficients result;
  result[0] = a[0];
  for (size_t i = 1; i < kDimension; ++i) {
    result[kDimension - i] = static_cast<uint32_t>((modulus - a[i]) % modulus);
  }
  return result;
}

// Horner's rule.
inline uint32_t value_at(const Coefficients& a, uint64_t point, uint64_t modulus) {
  uint64_t value = 0;
  for (size_t i = kDimension; i-- > 0;) value = (value * point + a[i]) % modulus;
  return static_cast<uint32_t>(value);
}

inline uint64_t power(uint64_t base, uint64_t exponent, uint64_t modulus) {
  uint64_t result = 1;
  for (uint64_t i = 0; i < exponent; ++i) result = result * base % modulus;
  return result;
}

}  // namespace blindfuse::ring::plain
