#include "host/cpu/packing/packing_table_builder.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "src/arithmetic/ring/modulus_switch.h"
#include "src/base/errors.h"

namespace blindfuse {

using ring::kDigits;
using ring::kDimension;
using ring::kOrbit;
using ring::MutablePolynomial;
using ring::Polynomial;

namespace {

using Coefficients = std::array<uint32_t, kDimension>;

size_t at(size_t row, size_t column) { return row * kDimension + column; }

void transpose(std::vector<uint32_t>& square) {
  constexpr size_t kTile = 32;  // two tiles stay near, in the second-level cache
  for (size_t row = 0; row < kDimension; row += kTile) {
    for (size_t column = row; column < kDimension; column += kTile) {
      for (size_t i = row; i < row + kTile; ++i) {
        for (size_t j = std::max(column, i + 1); j < column + kTile; ++j) {
          std::swap(square[at(i, j)], square[at(j, i)]);
        }
      }
    }
  }
}

}  // namespace

// R_g = 1/d sum over columns c of X^c g(h_c), for every automorphism g: the sum of g(s) R_g over
// all g is the polynomial of the constant terms of s h_c, because the sum of all g(f) is d times
// the constant term of f.
//
// At the point w^m, R_g is 1/d F[m][m g] with F[m][m'] = sum over c of w^(m c) h_c(w^m'): one
// two-dimensional NTT gives them all.
struct PackingTableBuilder::Traces {
  std::vector<uint32_t> square;

  Traces(const ring::Ntt& ntt, std::span<const uint32_t> hints) : square(kDimension * kDimension) {
    const ring::PrimeField& field = ntt.field();
    const ring::MontgomeryConstant scale =
        ring::MontgomeryConstant::of(field.inverse(kDimension), field);
    for (size_t c = 0; c < kDimension; ++c) {
      for (size_t i = 0; i < kDimension; ++i) {
        square[at(c, i)] = scale.times(ring::switch_to_q(hints[at(c, i)]), field);
      }
      ntt.forward(row(c));
    }
    transpose(square);  // [m'][c]
    for (size_t point = 0; point < kDimension; ++point) ntt.forward(row(point));
    transpose(square);  // [m][m']
    // m' = m g: turned by m, a row is in the order of g.
    Coefficients turned;
    for (size_t point = 0; point < kDimension; ++point) {
      ring::apply({point % kOrbit, point >= kOrbit}, row(point), turned);
      std::copy(turned.begin(), turned.end(), row(point).begin());
    }
    transpose(square);  // [g][m]
  }

  MutablePolynomial row(size_t i) {
    return MutablePolynomial(square.data() + at(i, 0), kDimension);
  }

  // R_g at the points.
  Polynomial trace(const ring::Automorphism& g) const {
    const size_t place = (g.negative ? kOrbit : 0) + g.power;
    return Polynomial(square.data() + at(place, 0), kDimension);
  }
};

PackingTableBuilder::PackingTableBuilder(std::vector<uint32_t> key_masks, const RingKernel& kernel)
    : ntt_(make_ntt(kernel, ring::kPackingModulus)), key_masks_(std::move(key_masks)) {}

void PackingTableBuilder::build(std::span<const uint32_t> hints, MutablePackingTable table,
                                MutablePolynomial mask) const {
  invariant(hints.size() == kDimension * kDimension, "hint polynomials of 2048 columns");
  const Traces traces(*ntt_, hints);
  Coefficients minus_one;
  key_switch_down(traces, false, table, mask);
  key_switch_down(traces, true, table, minus_one);
  add_key_switched(minus_one, 2 * kChainKeySwitches, table, mask);
  ntt_->inverse(mask);
}

void PackingTableBuilder::key_switch_down(const Traces& traces, bool negative,
                                          MutablePackingTable table, MutablePolynomial mask) const {
  const Polynomial highest = traces.trace({kOrbit - 1, negative});
  std::copy(highest.begin(), highest.end(), mask.begin());
  Coefficients next;
  const size_t first = negative ? kChainKeySwitches : 0;
  for (size_t number = first; number < first + kChainKeySwitches; ++number) {
    const Polynomial trace = traces.trace(KeySwitch::number(number).to);
    std::copy(trace.begin(), trace.end(), next.begin());
    add_key_switched(mask, number, table, next);
    std::copy(next.begin(), next.end(), mask.begin());
  }
}

void PackingTableBuilder::add_key_switched(Polynomial mask, size_t number,
                                           MutablePackingTable table,
                                           MutablePolynomial next) const {
  const ring::PrimeField& field = ntt_->field();
  const KeySwitch now = KeySwitch::number(number);
  Coefficients coefficients;
  std::copy(mask.begin(), mask.end(), coefficients.begin());
  ntt_->inverse(coefficients);
  std::array<Coefficients, kDigits> digits;
  for (size_t i = 0; i < kDimension; ++i) {
    const auto found = ring::decompose(coefficients[i], field);
    for (size_t k = 0; k < kDigits; ++k) digits[k][i] = field.reduce_signed(found[k]);
  }
  for (size_t k = 0; k < kDigits; ++k) {
    ntt_->forward(digits[k]);
    Coefficients key_mask;
    ring::apply(now.to, key_masks_.mask(now.key, k), key_mask);
    ntt_->add_products(digits[k], key_mask, next);
    for (size_t group = 0; group < kPointGroups; ++group) {
      std::copy_n(digits[k].begin() + static_cast<std::ptrdiff_t>(group * kPointsTogether),
                  kPointsTogether,
                  table.begin() + static_cast<std::ptrdiff_t>(table_place(group, number, k)));
    }
  }
}

}  // namespace blindfuse
