#include "host/cpu/packing/traces.h"

#include <algorithm>

#include "host/system/memory.h"
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

Traces::Traces(const KeySwitchNtt& ntt) : ntt_(ntt) {
  // The two polynomials in X^c, f0 and f1 of 1024 coefficients, are wanted at one half of the
  // points each, where X^1024 is i and -i. There, f0 + f1 + X^1024 i (f1 - f0) is 2 f0 and 2 f1.
  const ring::PrimeField& field = ntt.field();
  const uint32_t scale = field.inverse(kDimension);
  factors_.fill(ring::MontgomeryConstant::of(scale, field).value);
  std::fill_n(
      factors_.begin() + kOrbit, kOrbit,
      ring::MontgomeryConstant::of(field.multiply(scale, root_of_minus_one(ntt)), field).value);

  constexpr size_t kWords = kOrbit * kDimension;
  static_assert(kPackColumns == kOrbit);
  memory_ = map_memory("polynomials of a pack", 2 * kWords * sizeof(uint32_t));
  columns_ = static_cast<uint32_t*>(memory_.get());
  values_ = columns_ + kWords;
}

void Traces::set(size_t column, ring::Polynomial values) {
  Coefficients joined;
  ntt_.join_halves(values, joined);
  const uint32_t* from = joined.data();
  for (size_t half = 0; half < 2; ++half) {
    for (size_t part = 0; part < kParts; ++part, from += kPartPoints) {
      std::copy_n(from, kPartPoints, columns_ + place(part, half, column));
    }
  }
}

void Traces::transform(size_t part, size_t column_count) {
  // A polynomial for each point. Rows that lie a power of two apart would share few lines of the
  // cache.
  constexpr size_t kPitch = kDimension + 16;
  std::array<uint32_t, kPartPoints * kPitch> rows;
  for (size_t half = 0; half < 2; ++half) {
    const uint32_t* from = columns_ + place(part, half, 0);
    for (size_t c = 0; c < column_count; ++c, from += kPartPoints) {
      for (size_t p = 0; p < kPartPoints; ++p) rows[p * kPitch + half * kOrbit + c] = from[p];
    }
    for (size_t p = 0; p < kPartPoints; ++p) {
      uint32_t* row = rows.data() + p * kPitch + half * kOrbit;
      std::fill(row + column_count, row + kOrbit, 0u);
    }
  }
  for (size_t p = 0; p < kPartPoints; ++p) {
    Coefficients scaled{};
    const ring::MutablePolynomial row(rows.data() + p * kPitch, kDimension);
    ntt_.add_divided_products(row, factors_, scaled);
    ntt_.forward(scaled);
    std::ranges::copy(scaled, row.begin());
  }
  // Point m' of the part is m g.
  for (size_t half = 0; half < 2; ++half) {
    uint32_t* to = values_ + place(part, half, 0);
    for (size_t g = 0; g < kOrbit; ++g, to += kPartPoints) {
      for (size_t p = 0; p < kPartPoints; ++p) {
        const size_t m = (part * kPartPoints + p + kOrbit - g) % kOrbit;
        to[p] = rows[p * kPitch + half * kOrbit + m];
      }
    }
  }
}

void Traces::read(const ring::Automorphism& g, ring::MutablePolynomial out) const {
  for (size_t half = 0; half < 2; ++half) {
    const auto of_half = out.subspan(half * kOrbit, kOrbit);
    for (size_t part = 0; part < kParts; ++part) {
      const uint32_t* from = values_ + place(part, half, g.power);
      const size_t first = (part * kPartPoints + kOrbit - g.power) % kOrbit;
      const auto to = of_half.begin() + static_cast<std::ptrdiff_t>(first);
      const size_t count = kOrbit - first;
      if (count >= kPartPoints) {
        std::copy_n(from, kPartPoints, to);
        continue;
      }
      std::copy_n(from, count, to);
      std::copy_n(from + count, kPartPoints - count, of_half.begin());
    }
  }
}

void Traces::prefetch(const ring::Automorphism& g) const {
  for (size_t half = 0; half < 2; ++half) {
    for (size_t part = 0; part < kParts; ++part) {
      __builtin_prefetch(values_ + place(part, half, g.power));
    }
  }
}

}  // namespace blindfuse
