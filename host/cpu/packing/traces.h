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

 private:
  static constexpr size_t kPartPoints = ring::kOrbit / kParts;
  // Places that lie a power of two apart share few lines of a cache.
  static constexpr size_t kColumnPitch = ring::kDimension + 16;
  static constexpr size_t kRowPitch = ring::kOrbit + 16;

  const KeySwitchNtt& ntt_;
  std::array<uint32_t, ring::kDimension> factors_;  // times 2^32
  std::shared_ptr<void> memory_;
  uint32_t* columns_;    // of each: the sum of both halves of the points, and the difference
  uint32_t* halves_[2];  // row g: the values at the points of a half
};

}  // namespace blindfuse
