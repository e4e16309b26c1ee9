#include "host/cpu/packing/traces.h"

#include <algorithm>
#include <array>
#include <utility>

#include "src/arithmetic/ring/prime_field.h"

namespace blindfuse {

using ring::kDimension;
using ring::kOrbit;

namespace {

using Coefficients = std::array<uint32_t, kDimension>;

// The value of X^1024 at the first half of the points, a square root of -1. At the other half it is
// the other one.
uint32_t root_of_minus_one(const ring::Ntt& ntt) {
  Coefficients power{};
  power[kOrbit] = 1;
  ntt.forward(power);
  return power[0];
}

}  // namespace

void Traces::Square::transpose() {
  constexpr size_t kTile = 32;  // two tiles stay near, in the second-level cache
  for (size_t row = 0; row < kOrbit; row += kTile) {
    for (size_t column = row; column < kOrbit; column += kTile) {
      for (size_t i = row; i < row + kTile; ++i) {
        for (size_t j = std::max(column, i + 1); j < column + kTile; ++j) {
          std::swap(words_[i * kOrbit + j], words_[j * kOrbit + i]);
        }
      }
    }
  }
}

Traces::Traces(const ring::Ntt& ntt) : ntt_(ntt) {}

void Traces::set(size_t column, ring::Polynomial values) { put(column, values); }

void Traces::transform() {
  const ring::PrimeField& field = ntt_.field();
  transpose();  // [m'][c]
  // The two polynomials in X^c, f0 and f1 of 1024 coefficients, are wanted at one half of the
  // points each, where X^1024 is i and -i. There, f0 + f1 + X^1024 i (f1 - f0) is 2 f0 and 2 f1.
  const uint32_t scale = field.inverse(kDimension);
  const auto even = ring::MontgomeryConstant::of(scale, field);
  const auto odd =
      ring::MontgomeryConstant::of(field.multiply(scale, root_of_minus_one(ntt_)), field);
  Coefficients both;
  for (size_t point = 0; point < kOrbit; ++point) {
    const auto first = halves_[0].row(point), second = halves_[1].row(point);
    for (size_t c = 0; c < kPackColumns; ++c) {
      both[c] = even.times(field.add(first[c], second[c]), field);
      both[kOrbit + c] = odd.times(field.subtract(second[c], first[c]), field);
    }
    ntt_.forward(both);
    put(point, both);
  }
  transpose();  // [m][m']
  // m' = m g: turned by m, a row is in the order of g.
  for (Square& half : halves_) {
    for (size_t point = 0; point < kOrbit; ++point) {
      const auto row = half.row(point);
      std::rotate(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(point), row.end());
    }
  }
  transpose();  // [g][m]
}

void Traces::read(const ring::Automorphism& g, ring::MutablePolynomial out) const {
  for (size_t half = 0; half < 2; ++half) {
    std::ranges::copy(halves_[half].row(g.power), out.subspan(half * kOrbit, kOrbit).begin());
  }
}

void Traces::put(size_t row, ring::Polynomial values) {
  for (size_t half = 0; half < 2; ++half) {
    std::ranges::copy(values.subspan(half * kOrbit, kOrbit), halves_[half].row(row).begin());
  }
}

void Traces::transpose() {
  for (Square& half : halves_) half.transpose();
}

}  // namespace blindfuse
