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

  constexpr size_t kColumnWords = kPackColumns * kColumnPitch, kHalfWords = kOrbit * kRowPitch;
  memory_ = map_memory("polynomials of a pack", (kColumnWords + 2 * kHalfWords) * sizeof(uint32_t));
  columns_ = static_cast<uint32_t*>(memory_.get());
  halves_[0] = columns_ + kColumnWords;
  halves_[1] = halves_[0] + kHalfWords;
}

void Traces::set(size_t column, ring::Polynomial values) {
  const ring::PrimeField& field = ntt_.field();
  uint32_t* sums = columns_ + column * kColumnPitch;
  uint32_t* differences = sums + kOrbit;
  for (size_t point = 0; point < kOrbit; ++point) {
    const uint32_t first = values[point], second = values[kOrbit + point];
    sums[point] = field.add(first, second);
    differences[point] = field.subtract(second, first);
  }
}

void Traces::transform(size_t part, size_t column_count) {
  // Rows for the points of the part, apart as columns are.
  std::array<uint32_t, kPartPoints * kColumnPitch> both;
  const size_t point = part * kPartPoints;
  for (size_t half = 0; half < 2; ++half) {
    for (size_t c = 0; c < column_count; ++c) {
      const uint32_t* from = columns_ + c * kColumnPitch + half * kOrbit + point;
      for (size_t p = 0; p < kPartPoints; ++p) both[p * kColumnPitch + half * kOrbit + c] = from[p];
    }
    for (size_t p = 0; p < kPartPoints; ++p) {
      uint32_t* row = both.data() + p * kColumnPitch + half * kOrbit;
      std::fill(row + column_count, row + kOrbit, 0u);
    }
  }
  for (size_t p = 0; p < kPartPoints; ++p) {
    Coefficients scaled{};
    const ring::MutablePolynomial row(both.data() + p * kColumnPitch, kDimension);
    ntt_.add_divided_products(row, factors_, scaled);
    ntt_.forward(scaled);
    std::ranges::copy(scaled, row.begin());
  }
  // Point m' of the part is m g. What row g has of the part is contiguous, m = m' - g, up to the
  // end of the row.
  for (size_t half = 0; half < 2; ++half) {
    for (size_t g = 0; g < kOrbit; ++g) {
      uint32_t* row = halves_[half] + g * kRowPitch;
      const size_t m = (point + kOrbit - g) % kOrbit;
      for (size_t p = 0; p < kPartPoints; ++p) {
        const size_t to = (m + p) % kOrbit;
        row[to] = both[p * kColumnPitch + half * kOrbit + to];
      }
    }
  }
}

void Traces::read(const ring::Automorphism& g, ring::MutablePolynomial out) const {
  for (size_t half = 0; half < 2; ++half) {
    std::copy_n(halves_[half] + g.power * kRowPitch, kOrbit,
                out.begin() + static_cast<std::ptrdiff_t>(half * kOrbit));
  }
}

}  // namespace blindfuse
