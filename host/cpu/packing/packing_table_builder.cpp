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

// 1024 x 1024 words.
class Square {
 public:
  Square() : words_(kOrbit * kOrbit) {}

  std::span<uint32_t, kOrbit> row(size_t i) {
    return std::span<uint32_t, kOrbit>(words_.data() + i * kOrbit, kOrbit);
  }
  std::span<const uint32_t, kOrbit> row(size_t i) const {
    return std::span<const uint32_t, kOrbit>(words_.data() + i * kOrbit, kOrbit);
  }

  void transpose() {
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

 private:
  std::vector<uint32_t> words_;
};

// The value of X^1024 at the first half of the points, a square root of -1. At the other half it is
// the other one.
uint32_t root_of_minus_one(const ring::Ntt& ntt) {
  Coefficients power{};
  power[kOrbit] = 1;
  ntt.forward(power);
  return power[0];
}

}  // namespace

// R_g = 1/1024 sum over columns c of X^c g(h_c), for every power g of 5: the sum of g(s) R_g over
// these g has the constant terms of s h_c as its coefficients 0 .. 1023, because the sum of all
// g(f) is 1024 (f_0 + f_1024 X^1024).
//
// At the point w^m, R_g is 1/1024 F[m][m g] with F[m][m'] = sum over c of w^(m c) h_c(w^m'): a
// two-dimensional NTT gives them all. m and m g are in the same half of the points.
struct PackingTableBuilder::Traces {
  Square halves[2];

  Traces(const ring::Ntt& ntt, std::span<const uint32_t> hints) {
    const ring::PrimeField& field = ntt.field();
    // Half of 1/1024: see below.
    const ring::MontgomeryConstant scale =
        ring::MontgomeryConstant::of(field.inverse(kDimension), field);
    Coefficients both;
    for (size_t c = 0; c < kPackColumns; ++c) {
      for (size_t i = 0; i < kDimension; ++i) {
        both[i] = scale.times(ring::switch_to_q(hints[c * kDimension + i]), field);
      }
      ntt.forward(both);
      put(both, c);
    }
    transpose();  // [m'][c]
    // The two polynomials in X^c, f0 and f1 of 1024 coefficients, are wanted at one half of the
    // points each, where X^1024 is i and -i. There, f0 + f1 + X^1024 i (f1 - f0) is 2 f0 and 2 f1.
    const ring::MontgomeryConstant root =
        ring::MontgomeryConstant::of(root_of_minus_one(ntt), field);
    for (size_t point = 0; point < kOrbit; ++point) {
      const auto first = halves[0].row(point), second = halves[1].row(point);
      for (size_t c = 0; c < kPackColumns; ++c) {
        both[c] = field.add(first[c], second[c]);
        both[kOrbit + c] = root.times(field.subtract(second[c], first[c]), field);
      }
      ntt.forward(both);
      put(both, point);
    }
    transpose();  // [m][m']
    // m' = m g: turned by m, a row is in the order of g.
    for (Square& half : halves) {
      for (size_t point = 0; point < kOrbit; ++point) {
        const auto row = half.row(point);
        std::rotate(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(point), row.end());
      }
    }
    transpose();  // [g][m]
  }

  // R_g at the points.
  void trace(const ring::Automorphism& g, MutablePolynomial out) const {
    for (size_t half = 0; half < 2; ++half) {
      std::ranges::copy(halves[half].row(g.power), out.subspan(half * kOrbit, kOrbit).begin());
    }
  }

 private:
  void put(const Coefficients& values, size_t row) {
    for (size_t half = 0; half < 2; ++half) {
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(half * kOrbit), kOrbit,
                  halves[half].row(row).begin());
    }
  }
  void transpose() {
    for (Square& half : halves) half.transpose();
  }
};

PackingTableBuilder::PackingTableBuilder(std::vector<uint32_t> key_masks, const RingKernel& kernel)
    : ntt_(make_ntt(kernel, ring::kPackingModulus)), key_masks_(std::move(key_masks)) {}

void PackingTableBuilder::build(std::span<const uint32_t> hints, MutablePackingTable table,
                                MutablePolynomial mask) const {
  invariant(hints.size() == kPackColumns * kDimension, "hint polynomials of 1024 columns");
  const Traces traces(*ntt_, hints);
  traces.trace({kOrbit - 1}, mask);
  Coefficients next;
  for (size_t number = 0; number < kKeySwitches; ++number) {
    traces.trace(key_switch_to(number), next);
    add_key_switched(mask, number, table, next);
    std::copy(next.begin(), next.end(), mask.begin());
  }
  ntt_->inverse(mask);
}

void PackingTableBuilder::add_key_switched(Polynomial mask, size_t number,
                                           MutablePackingTable table,
                                           MutablePolynomial next) const {
  const ring::PrimeField& field = ntt_->field();
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
    ring::apply(key_switch_to(number), key_masks_.mask(k), key_mask);
    ntt_->add_products(digits[k], key_mask, next);
    for (size_t group = 0; group < kPointGroups; ++group) {
      std::copy_n(digits[k].begin() + static_cast<std::ptrdiff_t>(group * kPointsTogether),
                  kPointsTogether,
                  table.begin() + static_cast<std::ptrdiff_t>(table_place(group, number, k)));
    }
  }
}

}  // namespace blindfuse
