// Polynomials of ring_dimension.h by their values at the 2048 roots of X^2048 + 1 modulo a prime:
// there, products are taken point by point.
//
// The points are in the order of the orbit of 5: with w a primitive 4096-th root of one, point k is
// w^(5^k), and point 1024 + k is w^(-5^k), for k = 0 .. 1023. An automorphism then moves nothing
// but whole halves: it turns each by some places, and exchanges them or not (automorphism.h).
#pragma once

#include <cstdint>
#include <memory>

#include "src/arithmetic/ring/prime_field.h"
#include "src/arithmetic/ring/ring_dimension.h"

namespace blindfuse::ring {

// Implementations agree bit for bit; any thread may use one.
class RingTransform {
 public:
  virtual ~RingTransform() = default;

  const PrimeField& field() const { return field_; }

  // From coefficients to values, and back; in place.
  virtual void forward(MutablePolynomial polynomial) const = 0;
  virtual void inverse(MutablePolynomial polynomial) const = 0;
  // sum += a * b, point by point.
  virtual void add_products(Polynomial a, Polynomial b, MutablePolynomial sum) const = 0;

 protected:
  explicit RingTransform(uint32_t modulus) : field_(modulus) {}
  RingTransform(const RingTransform&) = delete;
  RingTransform& operator=(const RingTransform&) = delete;

  const PrimeField field_;
};

// For any processor; host/cpu/packing has faster ones. The modulus is a prime in 2^31 .. 2^32 - 1
// that is 1 modulo 4096; aborts where there are not 2048 points.
std::unique_ptr<const RingTransform> portable_transform(uint32_t modulus);

}  // namespace blindfuse::ring
