#include "host/cpu/packing/short_traces.h"

#include <algorithm>
#include <array>
#include <bit>

#include "src/arithmetic/ring/prime_field.h"
#include "src/arithmetic/ring/ring_dimension.h"
#include "src/base/errors.h"

namespace blindfuse {

using ring::kDimension;
using ring::kOrbit;
using ring::kOrder;

namespace {

// The exponents of w at the points of the first half: powers of 5. Those of the other half are
// their negatives.
std::array<uint32_t, kOrbit> powers_of_five() {
  std::array<uint32_t, kOrbit> powers;
  uint32_t power = 1;
  for (uint32_t& each : powers) {
    each = power;
    power = power * 5 % kOrder;
  }
  return powers;
}

// w at every point.
std::array<uint32_t, kDimension> points_of(const ring::Ntt& ntt) {
  std::array<uint32_t, kDimension> x{};
  x[1] = 1;
  ntt.forward(x);
  return x;
}

uint32_t reversed(uint32_t number, uint32_t bits) {
  uint32_t result = 0;
  for (uint32_t bit = 0; bit < bits; ++bit) result |= (number >> bit & 1) << (bits - 1 - bit);
  return result;
}

}  // namespace

ShortTraces::ShortTraces(const ring::Ntt& ntt, uint32_t order)
    : ntt_(ntt),
      order_(order),
      twists_(order * kDimension),
      roots_(order),
      places_(order * kDimension) {
  invariant(std::has_single_bit(order) && order >= 2 && order <= kOrbit / 2,
            "a power of two of columns");
  const ring::PrimeField& field = ntt.field();
  const std::array<uint32_t, kDimension> points = points_of(ntt);
  std::fill_n(twists_.begin(), kDimension, field.inverse(order));
  for (size_t i = kDimension; i < twists_.size(); ++i) {
    twists_[i] = field.multiply(twists_[i - kDimension], points[i % kDimension]);
  }
  // The first point is w itself.
  const uint32_t root = field.power(points[0], kOrder / order);
  roots_[0] = 1;
  for (size_t t = 1; t < order; ++t) roots_[t] = field.multiply(roots_[t - 1], root);

  const std::array<uint32_t, kOrbit> powers = powers_of_five();
  const auto bits = static_cast<uint32_t>(std::countr_zero(order));
  for (size_t i = 0; i < order; ++i) {
    for (size_t p = 0; p < kDimension; ++p) {
      // w^p = w^q times the t-th power of the root, q = p g_i.
      const size_t a = p % kOrbit;
      const size_t b = (a + i * kOrbit / order) % kOrbit;
      const uint32_t apart = p < kOrbit ? powers[a] - powers[b] : powers[b] - powers[a];
      const uint32_t t = apart % kOrder / (kOrder / order);
      places_[i * kDimension + p] = static_cast<uint16_t>(reversed(t, bits));
    }
  }
}

void ShortTraces::transform(std::span<uint32_t> rows, std::span<uint32_t> scratch) const {
  invariant(rows.size() == order_ * kDimension && scratch.size() == rows.size(),
            "a row for every column");
  const ring::PrimeField& field = ntt_.field();
  for (size_t i = 0; i < rows.size(); ++i) scratch[i] = field.multiply(rows[i], twists_[i]);
  fourier(scratch);
  for (size_t i = 0; i < order_; ++i) {
    for (size_t p = 0; p < kDimension; ++p) {
      const size_t q = p / kOrbit * kOrbit + (p + i * kOrbit / order_) % kOrbit;
      rows[i * kDimension + p] = scratch[places_[i * kDimension + p] * kDimension + q];
    }
  }
}

// Of the m values of each point, the transform, in the order of reversed bits.
void ShortTraces::fourier(std::span<uint32_t> rows) const {
  const ring::PrimeField& field = ntt_.field();
  for (size_t length = order_; length >= 2; length /= 2) {
    for (size_t first = 0; first < order_; first += length) {
      for (size_t k = 0; k < length / 2; ++k) {
        const auto twiddle = ring::MontgomeryConstant::of(roots_[k * (order_ / length)], field);
        uint32_t* low = rows.data() + (first + k) * kDimension;
        uint32_t* high = low + length / 2 * kDimension;
        for (size_t point = 0; point < kDimension; ++point) {
          const uint32_t difference = field.subtract(low[point], high[point]);
          low[point] = field.add(low[point], high[point]);
          high[point] = twiddle.times(difference, field);
        }
      }
    }
  }
}

}  // namespace blindfuse
