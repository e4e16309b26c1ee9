#include "host/cpu/packing/second_level_packer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "host/cpu/packing/packing_keys.h"
#include "host/cpu/packing/traces.h"
#include "src/base/errors.h"

namespace blindfuse {

using ring::kDigits;
using ring::kDimension;
using ring::kOrbit;
using ring::kPackingModulus;
using ring::MutablePolynomial;
using ring::Polynomial;

namespace {

using Coefficients = std::array<uint32_t, kDimension>;

// X -> X^-1: exchanges the halves of the points.
void conjugate(MutablePolynomial values) {
  std::rotate(values.begin(), values.begin() + kOrbit, values.end());
}

// The client's key of digit k under an automorphism, in the evaluation domain.
void turned_key(const uint32_t* key, size_t k, const ring::Automorphism& to,
                MutablePolynomial out) {
  for (size_t half = 0; half < 2; ++half) {
    const uint32_t* from = key + (2 * k + half) * PackingKeys::kHalfWords;
    std::rotate_copy(from, from + to.power, from + kOrbit, out.begin() + half * kOrbit);
  }
}

}  // namespace

SecondLevelPacker::SecondLevelPacker(std::span<const uint32_t> blocks, uint32_t key_order,
                                     std::vector<uint32_t> key_masks, const RingKernel& kernel)
    : ntt_(make_ntt(kernel, kPackingModulus)),
      key_masks_(std::move(key_masks)),
      blocks_(blocks.begin(), blocks.end()) {
  invariant(!blocks_.empty() && blocks_.size() % kDimension == 0, "whole polynomials");
  for (size_t j = 0; j < blocks_.size(); j += kDimension) {
    conjugate(MutablePolynomial(blocks_.data() + j, kDimension));
  }
  if (key_order > 0) short_.emplace(*ntt_, key_order);
}

void SecondLevelPacker::pack(const Task& task) const {
  invariant(task.column_count <= (short_ ? short_->order() : kPackColumns) &&
                task.words.size() <= blocks_.size(),
            "rows of the blocks, and columns of one pack");
  Coefficients values;
  if (!short_) {
    Traces traces(*ntt_);
    for (size_t c = 0; c < task.column_count; ++c) {
      hint_values(task, c, values);
      traces.set(c, values);
    }
    traces.transform();
    switch_keys(task, kKeySwitches, 1,
                [&](size_t i, MutablePolynomial out) { traces.read({i}, out); });
    return;
  }
  const size_t order = short_->order();
  std::vector<uint32_t> rows(order * kDimension), scratch(rows.size());
  for (size_t c = 0; c < task.column_count; ++c) {
    hint_values(task, c, MutablePolynomial(rows.data() + c * kDimension, kDimension));
  }
  short_->transform(rows, scratch);
  switch_keys(task, order - 1, kOrbit / order, [&](size_t i, MutablePolynomial out) {
    std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(i * kDimension), kDimension,
                out.begin());
  });
}

// From the polynomial number `count` to number 0, of which number i is under 5^(i power).
template <typename Trace>
void SecondLevelPacker::switch_keys(const Task& task, size_t count, size_t power,
                                    const Trace& trace) const {
  const ring::PrimeField& field = ntt_->field();
  Coefficients values, next;
  Coefficients taken{};  // from the body, in the evaluation domain
  std::array<Coefficients, kDigits> digits;
  trace(count, task.mask);
  for (size_t i = count; i-- > 0;) {
    const ring::Automorphism to{i * power};
    ntt_->inverse(task.mask);
    for (size_t x = 0; x < kDimension; ++x) {
      const auto found = ring::decompose(task.mask[x], field);
      for (size_t k = 0; k < kDigits; ++k) digits[k][x] = field.reduce_signed(found[k]);
    }
    trace(i, next);
    for (size_t k = 0; k < kDigits; ++k) {
      ntt_->forward(digits[k]);
      ring::apply(to, key_masks_.mask(k), values);
      ntt_->add_products(digits[k], values, next);
      turned_key(task.key, k, to, values);
      ntt_->add_products(digits[k], values, taken);
    }
    std::copy(next.begin(), next.end(), task.mask.begin());
  }
  ntt_->inverse(task.mask);
  ntt_->inverse(taken);
  add_products(task, task.body);
  for (size_t c = 0; c < kPackColumns; ++c) task.body[c] = field.subtract(task.body[c], taken[c]);
}

// sum over the blocks j of a2_j E_j(X^-1), E_j of a column's entries.
void SecondLevelPacker::hint_values(const Task& task, size_t column,
                                    MutablePolynomial values) const {
  const ring::PrimeField& field = ntt_->field();
  std::ranges::fill(values, 0u);
  Coefficients entries;
  for (size_t first = 0; first < task.words.size(); first += kDimension) {
    const size_t count = std::min(kDimension, task.words.size() - first);
    for (size_t i = 0; i < count; ++i) {
      entries[i] = field.reduce_signed(task.entries[(first + i) * task.row_pitch + column]);
    }
    std::fill(entries.begin() + static_cast<std::ptrdiff_t>(count), entries.end(), 0u);
    ntt_->forward(entries);
    ntt_->add_products(Polynomial(blocks_.data() + first, kDimension), entries, values);
  }
  conjugate(values);
}

// Of each column, the sum of its entries times the rows' words, modulo the packing modulus.
void SecondLevelPacker::add_products(const Task& task, std::span<uint32_t> sums) const {
  constexpr size_t kRowsAtOnce = 1024;  // products below 2^52 stay below 2^62
  std::ranges::fill(sums, 0u);
  std::vector<int64_t> some(task.column_count);
  for (size_t first = 0; first < task.words.size(); first += kRowsAtOnce) {
    std::ranges::fill(some, 0);
    for (size_t row = first; row < std::min(task.words.size(), first + kRowsAtOnce); ++row) {
      const auto word = static_cast<int64_t>(task.words[row]);
      const int32_t* entries = task.entries.data() + row * task.row_pitch;
      for (size_t c = 0; c < task.column_count; ++c) some[c] += word * entries[c];
    }
    for (size_t c = 0; c < task.column_count; ++c) {
      constexpr int64_t kQ = kPackingModulus;
      sums[c] = static_cast<uint32_t>(((some[c] + sums[c]) % kQ + kQ) % kQ);
    }
  }
}

}  // namespace blindfuse
