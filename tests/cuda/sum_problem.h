// Packing tables and packing keys as the kernel of the sums is given them, and the sums that are
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

// Where limb `limb` of a table's word lies in the bytes of its point.
inline uint64_t table_byte(uint32_t pack, uint32_t digit, uint32_t power, uint32_t limb) {
  const uint64_t step = (uint64_t{pack} / 8 * 3 + digit) * 32 + power / 32;
  const uint32_t lane = pack % 8 * 4 + power % 16 / 4;
  return ((step * 2 + limb / 2) * 32 + lane) * 16 + limb % 2 * 8 + power % 32 / 16 * 4 + power % 4;
}

// A byte of a key, cut: word (i + copy) % 1024 of a half.
inline uint64_t plane_byte(uint32_t query, uint32_t digit, uint32_t half, uint32_t limb,
                           uint32_t copy, uint32_t i) {
  return ((((uint64_t{query} * 3 + digit) * 2 + half) * 4 + limb) * 4 + copy) * kPlaneBytes + i;
}

// Any words, at the points of up to four sets of the same 32 points: no more of the tables is
// there.
class SumProblem {
 public:
  SumProblem(support::SeededRandom& random, uint32_t queries, uint32_t packs, uint32_t first_set,
             uint32_t set_count)
      : queries_(queries),
        packs_(packs),
        first_set_(first_set),
        set_count_(set_count),
        // Whole tiles, though no more are packs.
        point_bytes_((uint64_t{packs} + 7) / 8 * 8 * 3 * 1024 * 4),
        tables_(32 * point_bytes_),
        planes_(uint64_t{queries} * 6 * 16 * kPlaneBytes),
        sums_(uint64_t{queries} * packs * 2048) {
    fill([&] { return random.u32(); });
  }
  void fill_with(uint32_t word) {
    fill([&] { return word; });
  }

  SumArgs args() const {
    const uint32_t first = first_set_ / 4 * 32;
    return {tables_.data() - first * point_bytes_,
            planes_.data(),
            packs_,
            queries_,
            first_set_,
            0,
            sums_.data()};
  }

  // Tables, key planes and sums.
  template <class F>
  void for_each_memory(const F& f) const {
    f(tables_), f(planes_), f(sums_);
  }

  void forget_sums() const { std::ranges::fill(sums_, kUntouched); }

  // Where a sum at a point of the sets is wrong, or another was touched; nothing if all is right.
  std::string trouble() const {
    for (uint32_t q = 0; q < queries_; ++q) {
      for (uint32_t p = 0; p < packs_; ++p) {
        for (uint32_t point = 0; point < 2048; ++point) {
          const uint32_t found = sums_[(uint64_t{q} * packs_ + p) * 2048 + point];
          if (found == (is_summed(point) ? sum(q, p, point) : kUntouched)) continue;
          return "query " + std::to_string(q) + " of " + std::to_string(queries_) + ", pack " +
                 std::to_string(p) + " of " + std::to_string(packs_) + ", point " +
                 std::to_string(point);
        }
      }
    }
    return "";
  }
  void expect_right() const { ASSERT_EQ(trouble(), ""); }

 private:
  static constexpr uint32_t kUntouched = 0xa5a5a5a5;  // as Memory comes

  template <class Word>
  void fill(const Word& word) {
    std::ranges::fill(tables_, uint8_t{0});
    for (uint32_t point = 0; point < 32; ++point) {
      for (uint32_t p = 0; p < packs_; ++p) {
        for (uint32_t power = 0; power < 1023 * 3; ++power) {
          set_bytes(word(), [&](uint32_t limb) -> uint8_t& {
            return tables_[point * point_bytes_ + table_byte(p, power / 1023, power % 1023, limb)];
          });
        }
      }
    }
    keys_.resize(uint64_t{queries_} * 6 * 1024);
    std::ranges::generate(keys_, word);
    for (uint32_t row = 0; row < queries_ * 6; ++row) {
      for (uint32_t copy = 0; copy < 4; ++copy) {
        for (uint32_t i = 0; i < kPlaneBytes; ++i) {
          set_bytes(keys_[uint64_t{row} * 1024 + (i + copy) % 1024],
                    [&](uint32_t limb) -> uint8_t& {
                      return planes_[plane_byte(row / 6, row % 6 / 2, row % 2, limb, copy, i)];
                    });
        }
      }
    }
  }

  template <class Place>
  static void set_bytes(uint32_t word, const Place& place) {
    for (uint32_t limb = 0; limb < 4; ++limb) place(limb) = static_cast<uint8_t>(word >> 8 * limb);
  }

  bool is_summed(uint32_t point) const {
    for (uint32_t set = first_set_; set < first_set_ + set_count_; ++set) {
      if (point / 32 == set / 4 && point % 4 == set % 4) return true;
    }
    return false;
  }

  // By the definition.
  uint32_t sum(uint32_t query, uint32_t pack, uint32_t point) const {
    uint64_t sum = 0;
    for (uint32_t digit = 0; digit < 3; ++digit) {
      const uint32_t half = point / 1024;
      const uint32_t* keys = keys_.data() + ((uint64_t{query} * 3 + digit) * 2 + half) * 1024;
      for (uint32_t power = 0; power < 1023; ++power) {
        uint32_t word = 0;
        for (uint32_t limb = 0; limb < 4; ++limb) {
          word |=
              uint32_t{tables_[point % 32 * point_bytes_ + table_byte(pack, digit, power, limb)]}
              << 8 * limb;
        }
        const uint64_t product = uint64_t{word} * keys[(point + power) % 1024];
        sum = (sum + product % ring::kPackingModulus) % ring::kPackingModulus;
      }
    }
    return static_cast<uint32_t>(sum);
  }

  const uint32_t queries_;
  const uint32_t packs_;
  const uint32_t first_set_;
  const uint32_t set_count_;
  const uint64_t point_bytes_;
  const Memory<uint8_t> tables_;
  const Memory<uint8_t> planes_;
  const Memory<uint32_t> sums_;
  std::vector<uint32_t> keys_;  // 1024 for each half of each digit of each query
};

}  // namespace blindfuse::emulator
