// Sums of products of polynomials over the integers, modulo 2^32, by NTTs modulo two primes and the
// Chinese remainder theorem (CRT).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "src/arithmetic/ring/ntt.h"
#include "src/arithmetic/ring/prime_field.h"
#include "src/arithmetic/ring/ring_dimension.h"

namespace blindfuse::ring {

// The residues of one polynomial modulo both primes, in the evaluation domain.
struct CrtResidues {
  std::array<uint32_t, kDimension> first, second;
};

// Exact as long as no coefficient of the sum leaves -2^62 .. 2^62. The factors are at most 2^31 (a
// query's) and 2^7 (a matrix's), so a sum may have 8192 products of d terms each: rows up to 2^24.
class CrtNtt {
 public:
  CrtNtt() : CrtNtt(portable_ntt(kPackingModulus), portable_ntt(kSecondModulus)) {}
  // NTTs of these two moduli.
  CrtNtt(std::unique_ptr<const Ntt> first, std::unique_ptr<const Ntt> second)
      : first_(std::move(first)), second_(std::move(second)) {}

  // Words are read as -2^31 .. 2^31 - 1. Modulo 2^32 this makes no difference, and the sums are
  // smaller.
  void forward_words(Polynomial words, CrtResidues& out) const;
  // Transforms small numbers, such as a ternary secret's or bytes of a matrix.
  void forward_small(std::span<const int8_t, kDimension> numbers, CrtResidues& out) const;

  // sum += a * b, point by point.
  void add_product(const CrtResidues& a, const CrtResidues& b, CrtResidues& sum) const;

  // Substitutes X -> X^-1: exchanges the halves.
  static void conjugate(CrtResidues& values);

  // The coefficients of a sum modulo 2^32. The sum is overwritten.
  void to_words(CrtResidues& sum, MutablePolynomial words) const;

 private:
  std::unique_ptr<const Ntt> first_, second_;
};

}  // namespace blindfuse::ring
