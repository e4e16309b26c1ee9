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

SecondLevelPacker::SecondLevelPacker(std::span<const uint32_t> blocks,
                                     std::vector<uint32_t> key_masks, const RingKernel& kernel)
    : ntt_(make_ntt(kernel, kPackingModulus)),
      key_masks_(std::move(key_masks)),
      blocks_(blocks.begin(), blocks.end()) {
  invariant(!blocks_.empty() && blocks_.size() % kDimension == 0, "whole polynomials");
  for (size_t j = 0; j < blocks_.size(); j += kDimension) {
    conjugate(MutablePolynomial(blocks_.data() + j, kDimension));
  }
}

void SecondLevelPacker::pack(const Task& task) const {
  invariant(task.column_count <= kPackColumns && task.words.size() <= blocks_.size(),
            "rows of the blocks, and columns of one pack");
  const ring::PrimeField& field = ntt_->field();
  Traces traces(*ntt_);
  Coefficients values, next;
  for (size_t c = 0; c < task.column_count; ++c) {
    hint_values(task, c, values);
    traces.set(c, values);
  }
  traces.transform();
  traces.read({kOrbit - 1}, task.mask);
  Coefficients taken{};  // from the body, in the evaluation domain
  std::array<Coefficients, kDigits> digits;
  for (size_t number = 0; number < kKeySwitches; ++number) {
    const ring::Automorphism to = key_switch_to(number);
    ntt_->inverse(task.mask);
    for (size_t i = 0; i < kDimension; ++i) {
      const auto found = ring::decompose(task.mask[i], field);
      for (size_t k = 0; k < kDigits; ++k) digits[k][i] = field.reduce_signed(found[k]);
    }
    traces.read(to, next);
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
