// The polynomials of a pack under every automorphism, from which key switching starts.
//
// R_g = 1/1024 sum over columns c of X^c g(h_c), for every power g of 5: the sum of g(s) R_g over
// these g has the constant terms of s h_c as its coefficients 0 .. 1023, because the sum of all
// g(f) is 1024 (f_0 + f_1024 X^1024) (docs/PROTOCOL.md, section 19).
//
// At the point w^m, R_g is 1/1024 F[m][m g] with F[m][m'] = sum over c of w^(m c) h_c(w^m'): a
// two-dimensional NTT gives them all. m and m g are in the same half of the points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/ring/automorphism.h"
#include "src/arithmetic/ring/ntt.h"

namespace blindfuse {

// Takes 8 MiB.
class Traces {
 public:
  // The transform, of the packing modulus, outlives this. All h_c are zero.
  explicit Traces(const ring::Ntt& ntt);

  // values: h_c in the evaluation domain. Different columns on different threads.
  void set(size_t column, ring::Polynomial values);
  // Once, after all columns.
  void transform();
  // R_g in the evaluation domain, after transform(). Any thread.
  void read(const ring::Automorphism& g, ring::MutablePolynomial out) const;

 private:
  // 1024 x 1024 words.
  class Square {
   public:
    Square() : words_(ring::kOrbit * ring::kOrbit) {}
    std::span<uint32_t, ring::kOrbit> row(size_t i) {
      return std::span<uint32_t, ring::kOrbit>(words_.data() + i * ring::kOrbit, ring::kOrbit);
    }
    std::span<const uint32_t, ring::kOrbit> row(size_t i) const {
      return std::span<const uint32_t, ring::kOrbit>(words_.data() + i * ring::kOrbit,
                                                     ring::kOrbit);
    }
    void transpose();

   private:
    std::vector<uint32_t> words_;
  };

  void put(size_t row, ring::Polynomial values);
  void transpose();

  const ring::Ntt& ntt_;
  Square halves_[2];  // of the points
};

}  // namespace blindfuse
