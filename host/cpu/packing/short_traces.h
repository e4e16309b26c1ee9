// The polynomials of few columns under the automorphisms of a small group, from which key switching
// with a short key starts.
//
// With m a power of two and g_i = 5^(1024 i / m): R_i = 1/m sum over the columns c < m of X^c
// g_i(h_c). The sum of g_i(s) R_i over all i has the constant terms of s h_c as its coefficients
// 0 .. m - 1, because the sum of all g_i(f) is m times the terms of f whose exponents are multiples
// of m.
//
// At the point w^p, R_i is 1/m times the value at w^p of the polynomial in X whose coefficients are
// h_c(w^(p g_i)). All i with the same p g_i = q ask for the values of one polynomial at the m roots
// of X^m = w^(q m): w^q times the m-th roots of unity. So a discrete Fourier transform of m values
// for each of the 2048 points gives them all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/arithmetic/ring/ntt.h"

namespace blindfuse {

class ShortTraces {
 public:
  // order: m, a power of two, 2 .. 512. The transform, of the packing modulus, outlives this. Takes
  // 12 KiB for each unit of m.
  ShortTraces(const ring::Ntt& ntt, uint32_t order);

  uint32_t order() const { return order_; }

  // rows: m rows of 2048 words, of which row c is h_c in the evaluation domain, zeros for columns
  // that there are not. Row i becomes R_i in the evaluation domain. scratch has as many words. Any
  // thread.
  void transform(std::span<uint32_t> rows, std::span<uint32_t> scratch) const;

 private:
  void fourier(std::span<uint32_t> rows) const;

  const ring::Ntt& ntt_;
  const uint32_t order_;
  std::vector<uint32_t> twists_;  // row c: w^(q c) / m, for every point q
  std::vector<uint32_t> roots_;   // powers of a primitive m-th root of unity
  std::vector<uint16_t> places_;  // row i: for every point p, the row in which its value is
};

}  // namespace blindfuse
