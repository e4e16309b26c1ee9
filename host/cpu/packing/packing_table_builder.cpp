#include "host/cpu/packing/packing_table_builder.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "host/cpu/packing/traces.h"
#include "src/arithmetic/ring/modulus_switch.h"
#include "src/base/errors.h"

namespace blindfuse {

using ring::kDigits;
using ring::kDimension;
using ring::MutablePolynomial;
using ring::Polynomial;

namespace {

using Coefficients = std::array<uint32_t, kDimension>;

}  // namespace

PackingTableBuilder::PackingTableBuilder(std::vector<uint32_t> key_masks, const RingKernel& kernel)
    : ntt_(make_ntt(kernel, ring::kPackingModulus)), key_masks_(std::move(key_masks)) {}

void PackingTableBuilder::build(std::span<const uint32_t> hints, MutablePackingTable table,
                                MutablePolynomial mask) const {
  invariant(hints.size() == kPackColumns * kDimension, "hint polynomials of 1024 columns");
  Traces traces(*ntt_);
  Coefficients next;
  for (size_t c = 0; c < kPackColumns; ++c) {
    for (size_t i = 0; i < kDimension; ++i) next[i] = ring::switch_to_q(hints[c * kDimension + i]);
    ntt_->forward(next);
    traces.set(c, next);
  }
  traces.transform();
  traces.read({ring::kOrbit - 1}, mask);
  for (size_t number = 0; number < kKeySwitches; ++number) {
    traces.read(key_switch_to(number), next);
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
