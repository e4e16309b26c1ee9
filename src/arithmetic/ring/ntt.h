// The number-theoretic transform (NTT) of polynomials of ring_dimension.h modulo a prime: their
// values at the 2048 roots of X^2048 + 1, the points. In this evaluation domain, products of
// polynomials are products of values.
//
// The points are in the order of the orbit of 5: with w a primitive 4096-th root of unity, point k
// is w^(5^k), and point 1024 + k is w^(-5^k), for k = 0 .. 1023. The automorphism of a power
// of 5 then rotates both halves by the same number of points (automorphism.h).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "src/arithmetic/ring/prime_field.h"
#include "src/arithmetic/ring/ring_dimension.h"

namespace blindfuse::ring {

// Implementations agree bit for bit; any thread may use one.
class Ntt {
 public:
  virtual ~Ntt() = default;

  const PrimeField& field() const { return field_; }

  // Transforms from coefficients to the evaluation domain, and back; in place.
  virtual void forward(MutablePolynomial polynomial) const = 0;
  virtual void inverse(MutablePolynomial polynomial) const = 0;
  // sum += a * b, point by point.
  virtual void add_products(Polynomial a, Polynomial b, MutablePolynomial sum) const = 0;

 protected:
  explicit Ntt(uint32_t modulus) : field_(modulus) {}
  Ntt(const Ntt&) = delete;
  Ntt& operator=(const Ntt&) = delete;

  const PrimeField field_;
};

// An Ntt for any processor; host/cpu/packing has faster ones (VectorNtt). The modulus is a prime in
// 2^31 .. 2^32 - 1 that is 1 modulo 4096. Aborts if the modulus has no 2048 points.
std::unique_ptr<const Ntt> portable_ntt(uint32_t modulus);

// The tables that every implementation uses: the twiddle factors, and the order in which the
// butterflies leave the values (Longa and Naehrig, ePrint 2016/504, algorithms 1 and 2).
struct Twiddles {
  // Powers of the root of unity in bit-reversed order: number `blocks + b` is for block b of the
  // level with `blocks` blocks. 2048 each; the first is not used.
  std::vector<MontgomeryConstant> forward, inverse;
  MontgomeryConstant scale;  // 1 / 2048

  explicit Twiddles(const PrimeField& field);

  // The butterflies leave the values in bit-reversed order. Entry k is the place there of the value
  // at point k, in the order of the orbit of 5.
  static const std::array<uint16_t, kDimension>& orbit_order();
};

// The primitive 4096-th root of unity w: the power (modulus - 1) / 4096 of the least number for
// which that power has order 4096.
uint32_t root_of_unity(const PrimeField& field);

// The residues of one polynomial modulo both primes, in the evaluation domain.
struct CrtResidues {
  std::array<uint32_t, kDimension> first, second;
};

// Sums of products of polynomials over the integers, modulo 2^32, by NTTs modulo two primes and the
// Chinese remainder theorem (CRT). Exact as long as no coefficient of the sum leaves -2^62 .. 2^62.
// The factors are at most 2^31 (a query's) and 2^7 (a matrix's), so a sum may have 8192 products of
// d terms each: rows up to 2^24.
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
