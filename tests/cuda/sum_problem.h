// Packing tables and packing keys as the kernels of the sums are given them, and the sums that are
// right.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "cuda/packing/kernels/packing_args.h"
#include "src/arithmetic/ring/prime_field.h"
#include "tests/cuda/device_memory.h"
#include "tests/support.h"

namespace blindfuse::emulator {

// Limb `limb` of a word: of the number that is equal to it modulo the packing modulus and lies
// between -0x80808080 and 0x7f7f7f7f.
inline int8_t signed_limb(uint32_t word, uint32_t limb) {
  int64_t rest = word;
  if (rest > 0x7f7f7f7f) rest -= ring::kPackingModulus;
  for (;; --limb) {
    const auto lowest = static_cast<int8_t>(rest & 0xff);
    if (limb == 0) return lowest;
    rest = (rest - lowest) / 256;
  }
}

// Where limb `limb` of a query's word in row `row` lies.
inline uint64_t limb_place(LimbOrder order, uint64_t pitch, uint32_t query, uint32_t limb,
                           uint64_t row) {
  const uint32_t limb_row = query / 4 * 16 + limb / 2 * 8 + query % 4 * 2 + limb % 2;
  switch (order) {
    case LimbOrder::kRows:
      return limb_row * pitch + row;
    case LimbOrder::kWgmma:
      return limb_row * pitch + row / 64 * 64 + row % 16 / 4 * 16 + row % 64 / 16 * 4 + row % 4;
    case LimbOrder::kMma:
      break;
  }
  return limb_row / 16 * 16 * pitch + fragment_offset(limb_row, row);
}

// Any words, at some points of a half: no more of the tables is there.
class SumProblem {
 public:
  // points: a multiple of 64.
  SumProblem(support::SeededRandom& random, LimbOrder order, uint32_t queries, uint32_t points = 64)
      : order_(order),
        queries_(queries),
        points_(points),
        // Whole tiles, though no more are queries.
        limbs_((uint64_t{queries} * 4 + 255) / 256 * 256 * kRows),
        columns_(uint64_t{points} * 4 * kRows),
        sums_(uint64_t{queries} * pitch()) {
    fill([&] { return random.u32(); }, [&] { return random.u32(); });
  }
  void fill_with(uint32_t table_word, uint32_t key_word) {
    fill([=] { return table_word; }, [=] { return key_word; });
  }

  SumArgs args() const {
    SumArgs args{};
    args.columns = columns_.data();
    args.column_pitch = kRows;
    args.column_count = points_ * 4;
    args.step_count = kRows / 128;
    args.limbs = limbs_.data();
    args.limb_pitch = kRows;
    args.query_count = queries_;
    args.products = sums_.data();
    args.product_pitch = pitch();
    return args;
  }

  // Something to add to.
  void forget_sums() const { std::ranges::fill(sums_, kBefore); }

  // Where a sum is wrong, or what lies between those of two queries was touched; nothing if all is
  // right.
  std::string trouble() const {
    for (uint32_t q = 0; q < queries_; ++q) {
      for (uint32_t point = 0; point < pitch(); ++point) {
        const uint64_t found = sums_[q * pitch() + point] - kBefore;
        if (point < points_ ? is_sum(found, q, point) : found == 0) continue;
        return "query " + std::to_string(q) + " of " + std::to_string(queries_) + ", point " +
               std::to_string(point) + " of " + std::to_string(points_);
      }
    }
    return "";
  }
  void expect_right() const { ASSERT_EQ(trouble(), ""); }

 private:
  static constexpr uint32_t kRows = 3 * 1024;
  static constexpr uint64_t kBefore = 0xfffffffffffff000;

  uint64_t pitch() const { return points_ + 5; }

  template <class TableWord, class KeyWord>
  void fill(const TableWord& table_word, const KeyWord& key_word) {
    table_.resize(uint64_t{points_} * kRows);
    std::ranges::generate(table_, table_word);
    keys_.resize(uint64_t{queries_} * kRows);
    std::ranges::generate(keys_, key_word);
    for (uint32_t row = 0; row < kRows; ++row) {
      for (uint32_t limb = 0; limb < 4; ++limb) {
        for (uint32_t point = 0; point < points_; ++point) {
          columns_[(uint64_t{point} * 4 + limb) * kRows + row] =
              signed_limb(table_[uint64_t{point} * kRows + row], limb);
        }
        for (uint32_t q = 0; q < queries_; ++q) {
          limbs_[limb_place(order_, kRows, q, limb, row)] =
              signed_limb(keys_[uint64_t{q} * kRows + row], limb);
        }
      }
    }
    forget_sums();
  }

  // By the definition, modulo the packing modulus.
  bool is_sum(uint64_t found, uint32_t query, uint32_t point) const {
    uint64_t sum = 0;
    for (uint32_t row = 0; row < kRows; ++row) {
      const uint64_t product =
          uint64_t{table_[uint64_t{point} * kRows + row]} * keys_[uint64_t{query} * kRows + row];
      sum = (sum + product % ring::kPackingModulus) % ring::kPackingModulus;
    }
    const int64_t rest = static_cast<int64_t>(found) % int64_t{ring::kPackingModulus};
    return static_cast<uint64_t>(rest < 0 ? rest + ring::kPackingModulus : rest) == sum;
  }

  const LimbOrder order_;
  const uint32_t queries_;
  const uint32_t points_;
  const Memory<int8_t> limbs_;
  const Memory<int8_t> columns_;
  const Memory<uint64_t> sums_;
  std::vector<uint32_t> table_;  // point after point
  std::vector<uint32_t> keys_;   // query after query
};

}  // namespace blindfuse::emulator
