// Sums of products of polynomials over the integers, modulo 2^32, by transforms modulo two primes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "src/arithmetic/ring/prime_field.h"
#include "src/arithmetic/ring/ring_dimension.h"
#include "src/arithmetic/ring/ring_transform.h"

namespace blindfuse::ring {

// Values of one polynomial modulo both primes.
struct PairOfValues {
  std::array<uint32_t, kDimension> first, second;
};

// Exact as long as no coefficient of the sum leaves -2^62 .. 2^62: with factors of at most 2^31 and
// 2^7, as a query's and a matrix's are, that is 8192 products of d terms, so rows up to 2^24.
class ExactProducts {
 public:
  ExactProducts()
      : ExactProducts(portable_transform(kPackingModulus), portable_transform(kSecondModulus)) {}
  // Transforms of these two moduli.
  ExactProducts(std::unique_ptr<const RingTransform> first,
                std::unique_ptr<const RingTransform> second)
      : first_(std::move(first)), second_(std::move(second)) {}

  // Words are read as -2^31 .. 2^31 - 1: modulo 2^32 that is the same, and the sums are smaller.
  void forward_words(Polynomial words, PairOfValues& out) const;
  // Small numbers, such as a ternary secret's or bytes of a matrix.
  void forward_small(std::span<const int8_t, kDimension> numbers, PairOfValues& out) const;

  // sum += a * b, point by point.
  void add_product(const PairOfValues& a, const PairOfValues& b, PairOfValues& sum) const;

  // X -> X^-1: exchanges the halves.
  static void conjugate(PairOfValues& values);

  // The coefficients of a sum modulo 2^32; the sum is used up.
  void to_words(PairOfValues& sum, MutablePolynomial words) const;

 private:
  std::unique_ptr<const RingTransform> first_, second_;
};

}  // namespace blindfuse::ring
