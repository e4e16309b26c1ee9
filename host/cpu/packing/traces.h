// The polynomials of a pack under every automorphism, from which key switching starts.
//
// R_g = 1/1024 sum over columns c of X^c g(h_c), for every power g of 5: the sum of g(s) R_g over
// these g has the constant terms of s h_c as its coefficients 0 .. 1023, because the sum of all
// g(f) is 1024 (f_0 + f_1024 X^1024) (docs/PROTOCOL.md, section 19).
//
// At the point w^m, R_g is 1/1024 F[m][m g] with F[m][m'] = sum over c of w^(m c) h_c(w^m'): a
// transform over the columns for each point m' gives the values at all m. m and m g are in the same
// half of the points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "host/cpu/packing/key_switch_ntt.h"
#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/ring/automorphism.h"

namespace blindfuse {

// Takes 17 MB, to be used for one pack after another.
class Traces {
 public:
  // Points are transformed in this many parts.
  static constexpr size_t kParts = 64;

  // The transform, of the packing modulus, outlives this. Throws ResourceError.
  explicit Traces(const KeySwitchNtt& ntt);

  // values: h_c in the evaluation domain. Different columns on different threads.
  void set(size_t column, ring::Polynomial values);
  // Part 0 .. kParts - 1, after the columns 0 .. column_count - 1; all others are zero. Different
  // parts on different threads.
  void transform(size_t part, size_t column_count);
  // R_g in the evaluation domain, after all parts. Any thread.
  void read(const ring::Automorphism& g, ring::MutablePolynomial out) const;
  // Asks memory for what read() of this g will want: it lies in many places.
  void prefetch(const ring::Automorphism& g) const;

 private:
  static constexpr size_t kPartPoints = ring::kOrbit / kParts;
  static_assert(kPartPoints * sizeof(uint32_t) == 64, "a line of the cache");

  // The words of a part's points, in one half of them, for a column or an automorphism: those of a
  // part lie together.
  static constexpr size_t place(size_t part, size_t half, size_t number) {
    return ((part * 2 + half) * ring::kOrbit + number) * kPartPoints;
  }

  const KeySwitchNtt& ntt_;
  std::array<uint32_t, ring::kDimension> factors_;  // times 2^32
  std::shared_ptr<void> memory_;
  uint32_t* columns_;  // half 0: the sums of both halves of the points; half 1: the differences
  uint32_t* values_;   // of automorphism g, at the points of a part over g
};

}  // namespace blindfuse
