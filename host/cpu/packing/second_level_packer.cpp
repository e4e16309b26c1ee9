#include "host/cpu/packing/second_level_packer.h"

#include <algorithm>
#include <numeric>

#include "host/cpu/packing/packing_keys.h"
#include "host/cpu/packing/scaled_key.h"
#include "src/base/errors.h"

namespace blindfuse {

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

}  // namespace

SecondLevelPacker::SecondLevelPacker(std::span<const uint32_t> blocks, uint32_t key_order,
                                     const std::vector<uint32_t>& key_masks,
                                     const RingKernel& kernel)
    : switcher_(key_masks, kernel), scaled_blocks_(blocks.begin(), blocks.end()) {
  invariant(!blocks.empty() && blocks.size() % kDimension == 0, "whole polynomials");
  multiply_by_two32(scaled_blocks_);
  for (size_t j = 0; j < blocks.size(); j += kDimension) {
    conjugate(MutablePolynomial(scaled_blocks_.data() + j, kDimension));
  }
  if (key_order > 0) short_.emplace(switcher_.ntt(), key_order);
}

SecondLevelPacker::Work::Work(const SecondLevelPacker& packer) {
  if (!packer.short_) {
    traces_.emplace(packer.switcher_.ntt());
    return;
  }
  rows_.resize(packer.short_->order() * kDimension);
  more_.resize(rows_.size());
}

void SecondLevelPacker::pack(const Task& task, Work& work) const {
  for (size_t part = 0; part < column_parts(task); ++part) make_columns(task, part, work);
  for (size_t part = 0; part < trace_parts(); ++part) make_traces(task, part, work);
  switch_keys(task, work);
}

size_t SecondLevelPacker::column_parts(const Task& task) {
  return (task.column_count + kTogether - 1) / kTogether;
}

size_t SecondLevelPacker::trace_parts() const { return short_ ? 1 : Traces::kParts; }

// Of each column, the sum of its entries times the rows' words, and sum over the blocks j of
// a2_j E_j(X^-1), E_j of the column's entries.
void SecondLevelPacker::make_columns(const Task& task, size_t part, Work& work) const {
  invariant(task.column_count <= (short_ ? short_->order() : kPackColumns) &&
                task.words.size() <= scaled_blocks_.size(),
            "rows of the blocks, and columns of one pack");
  const KeySwitchNtt& ntt = switcher_.ntt();
  const size_t column = part * kTogether;
  const size_t columns = std::min(kTogether, task.column_count - column);
  std::array<Coefficients, kTogether> values, products;
  for (size_t c = 0; c < columns; ++c) {
    values[c].fill(0);
    products[c].fill(0);
  }
  std::array<uint32_t, kTogether * kColumnPitch> entries;
  for (size_t first = 0; first < task.words.size(); first += kDimension) {
    const size_t rows = std::min(kDimension, task.words.size() - first);
    read_columns(task, {first, rows}, {column, columns}, entries);
    Coefficients words{};
    std::copy_n(task.words.begin() + static_cast<std::ptrdiff_t>(first), rows, words.begin());
    multiply_by_two32(words);
    for (size_t c = 0; c < columns; ++c) {
      const MutablePolynomial of_column(entries.data() + c * kColumnPitch, kDimension);
      ntt.add_divided_products(of_column, words, products[c]);
      ntt.forward_first(of_column, rows);
      ntt.add_divided_products(Polynomial(scaled_blocks_.data() + first, kDimension), of_column,
                               values[c]);
    }
  }
  for (size_t c = 0; c < columns; ++c) {
    work.sums_[column + c] =
        ntt.field().reduce(std::accumulate(products[c].begin(), products[c].end(), uint64_t{0}));
    conjugate(values[c]);
    if (short_) {
      std::ranges::copy(
          values[c], work.rows_.begin() + static_cast<std::ptrdiff_t>((column + c) * kDimension));
    } else {
      work.traces_->set(column + c, values[c]);
    }
  }
}

// The entries of some columns in a block of rows, each column's after another, modulo the packing
// modulus, and zeros where the block has no rows.
void SecondLevelPacker::read_columns(const Task& task, Range rows, Range columns,
                                     std::span<uint32_t, kTogether * kColumnPitch> entries) const {
  constexpr size_t kRowsAhead = 16;  // the rows are far apart in memory
  const ring::PrimeField& field = switcher_.ntt().field();
  const int32_t* from = task.entries.data() + rows.first * task.row_pitch + columns.first;
  for (size_t i = 0; i < rows.count; ++i, from += task.row_pitch) {
    __builtin_prefetch(from + kRowsAhead * task.row_pitch);
    for (size_t c = 0; c < columns.count; ++c) {
      entries[c * kColumnPitch + i] = field.reduce_signed(from[c]);
    }
  }
  for (size_t c = 0; c < columns.count; ++c) {
    const auto of_column = entries.subspan(c * kColumnPitch, kDimension);
    std::fill(of_column.begin() + static_cast<std::ptrdiff_t>(rows.count), of_column.end(), 0u);
  }
}

void SecondLevelPacker::make_traces(const Task& task, size_t part, Work& work) const {
  if (!short_) return work.traces_->transform(part, task.column_count);
  std::fill(work.rows_.begin() + static_cast<std::ptrdiff_t>(task.column_count * kDimension),
            work.rows_.end(), 0u);
  short_->transform(work.rows_, work.more_);
}

void SecondLevelPacker::switch_keys(const Task& task, Work& work) const {
  if (!short_) {
    switch_keys(task, kKeySwitches, 1, work, [&](size_t i, MutablePolynomial out) {
      work.traces_->read({i}, out);
      if (i > 0) work.traces_->prefetch({i - 1});
    });
    return;
  }
  const size_t order = short_->order();
  switch_keys(task, order - 1, kOrbit / order, work, [&](size_t i, MutablePolynomial out) {
    std::copy_n(work.rows_.begin() + static_cast<std::ptrdiff_t>(i * kDimension), kDimension,
                out.begin());
  });
}

// From the polynomial number `count` to number 0, of which number i is under 5^(i power).
template <typename Trace>
void SecondLevelPacker::switch_keys(const Task& task, size_t count, size_t power, const Work& work,
                                    const Trace& trace) const {
  const ring::PrimeField& field = switcher_.ntt().field();
  const ScaledKey bodies(task.key, PackingKeys::kHalfWords);
  Coefficients next;
  Coefficients taken{};  // from the body, in the evaluation domain
  DigitPolynomials digits;
  trace(count, task.mask);
  for (size_t i = count; i-- > 0;) {
    const ring::Automorphism to{i * power};
    trace(i, next);
    switcher_.decompose(task.mask, digits);
    switcher_.add_masks(digits, to, next);
    bodies.add_products(switcher_.ntt(), digits, to, taken);
    std::copy(next.begin(), next.end(), task.mask.begin());
  }
  switcher_.ntt().inverse(task.mask);
  switcher_.ntt().inverse(taken);
  for (size_t c = 0; c < kPackColumns; ++c) {
    const uint32_t sum = c < task.column_count ? work.sums_[c] : 0;
    task.body[c] = field.subtract(sum, taken[c]);
  }
}

}  // namespace blindfuse
