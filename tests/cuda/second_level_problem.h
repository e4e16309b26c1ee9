// What the kernels of the second level of packed responses are given, and what is right, by
// definition and with the host's transforms.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cuda/packing/kernels/second_level_args.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/ring/automorphism.h"
#include "src/arithmetic/ring/gadget.h"
#include "src/arithmetic/ring/modulus_switch.h"
#include "src/arithmetic/ring/ntt.h"
#include "src/arithmetic/ring/packing_key_format.h"
#include "src/arithmetic/second_level_spec.h"
#include "tests/cuda/device_memory.h"
#include "tests/cuda/host_ring.h"
#include "tests/support.h"

namespace blindfuse::emulator {

struct SecondLevelSizes {
  uint32_t queries;
  uint32_t rows;
  uint32_t columns;
  uint64_t words;      // of the first level; there may be fewer than rows times columns
  uint32_t key_order;  // 0: of the first level's key
  uint32_t word_bits = 11;
  uint32_t query_bits = 19;
  uint32_t mask_bits = 18;
  uint32_t response_bits = 21;
};

class SecondLevelProblem {
 public:
  using Coefficients = std::array<uint32_t, ring::kDimension>;

  SecondLevelProblem(support::SeededRandom& random, const SecondLevelSizes& sizes)
      : sizes_(sizes),
        word_pitch_((sizes.words * sizes.word_bits + 31) / 32),
        extra_pitch_(numbers_at() + (uint64_t{sizes.rows} * sizes.query_bits + 31) / 32),
        words_(sizes.queries * word_pitch_),
        extras_(sizes.queries * extra_pitch_),
        blocks_(uint64_t{sizes_of_spec().block_count()} * kRingWords),
        key_masks_(ring::kKeyWords),
        squares_(uint64_t{sizes.queries} * sizes_of_spec().pack_count() * kPackSquareWords),
        products_(uint64_t{sizes.queries} * sizes.columns),
        responses_(sizes.queries * response_pitch()) {
    fill_with_values(random, {extras_.begin(), extras_.end()});
    fill_with_values(random, {blocks_.begin(), blocks_.end()});
    fill_with_values(random, {key_masks_.begin(), key_masks_.end()});
    fill_with_values(random, {squares_.begin(), squares_.end()});
    fill_with_values(random, {products_.begin(), products_.end()});
    for (uint32_t q = 0; q < sizes.queries; ++q) {
      fill_with_numbers(random, words_.data() + q * word_pitch_, sizes.words, sizes.word_bits,
                        first_words_);
      fill_with_numbers(random, extras_.data() + q * extra_pitch_ + numbers_at(), sizes.rows,
                        sizes.query_bits, numbers_);
    }
  }

  SecondLevelSpec spec() const {
    SecondLevelSpec spec = sizes_of_spec();
    spec.blocks = {blocks_.begin(), blocks_.end()};
    spec.key_masks = {key_masks_.begin(), key_masks_.end()};
    return spec;
  }
  SecondLevelArgs args() const {
    const SecondLevelSpec all = spec();
    return {ring_.view(),
            {words_.data(), word_pitch_, sizes_.word_bits},
            sizes_.words,
            sizes_.rows,
            sizes_.columns,
            all.pack_count(),
            {extras_.data() + numbers_at(), extra_pitch_, sizes_.query_bits},
            key(0),
            extra_pitch_,
            blocks_.data(),
            key_masks_.data(),
            ring::MontgomeryConstant::of(field_.inverse(powers()), field_),
            all.key_switches(),
            kOrbitWords / powers(),
            squares_.data(),
            products_.data(),
            sizes_.mask_bits,
            sizes_.response_bits,
            responses_.data()};
  }
  const uint32_t* words() const { return words_.data(); }
  uint64_t word_pitch() const { return word_pitch_; }
  const uint32_t* extras() const { return extras_.data(); }
  uint64_t extra_pitch() const { return extra_pitch_; }
  // The bodies of the key that packs a query's rows.
  const uint32_t* key(uint32_t query) const {
    return extras_.data() + query * extra_pitch_ + numbers_at() - ring::kKeyWords;
  }
  const Memory<uint32_t>& squares() const { return squares_; }
  const Memory<uint32_t>& products() const { return products_; }
  uint32_t powers() const { return spec().key_switches() + 1; }

  int32_t entry(uint32_t query, uint32_t row, uint32_t column) const {
    const uint64_t i = uint64_t{row} * sizes_.columns + column;
    if (i >= sizes_.words) return 0;
    return static_cast<int32_t>(first_words_[query * sizes_.words + i]) -
           (1 << (sizes_.word_bits - 1));
  }
  uint32_t row_number(uint32_t query, uint32_t row) const {
    return ring::switch_to_q(numbers_[uint64_t{query} * sizes_.rows + row], sizes_.query_bits);
  }

  // sum over the blocks j of a2_j E_j(X^-1), at the points.
  Coefficients hint(uint32_t query, uint32_t column) const {
    Coefficients sum{};
    for (uint32_t first = 0; first < sizes_.rows; first += kRingWords) {
      Coefficients turned{};
      for (uint32_t i = 0; i < std::min(kRingWords, sizes_.rows - first); ++i) {
        // X^-i is -X^(2048 - i).
        const int32_t number = entry(query, first + i, column);
        turned[(kRingWords - i) % kRingWords] = field_.reduce_signed(i == 0 ? number : -number);
      }
      ntt_->forward(turned);
      ntt_->add_products(turned, row(blocks_.data() + first), sum);
    }
    return sum;
  }

  uint32_t product(uint32_t query, uint32_t column) const {
    uint32_t sum = 0;
    for (uint32_t row = 0; row < sizes_.rows; ++row) {
      sum = field_.add(sum, field_.multiply(row_number(query, row),
                                            field_.reduce_signed(entry(query, row, column))));
    }
    return sum;
  }

  // As it lies in the squares.
  Coefficients trace(uint32_t query, uint32_t pack, size_t power) const {
    const uint32_t* squares =
        squares_.data() + (uint64_t{query} * spec().pack_count() + pack) * kPackSquareWords;
    Coefficients values;
    for (size_t point = 0; point < ring::kDimension; ++point) {
      values[point] = squares[(point + power) % ring::kOrbit * ring::kDimension + point];
    }
    return values;
  }

  // R_g at the points, by definition: 1/n sum over the pack's columns c of X^c h_c(X^g), n the
  // number of powers.
  Coefficients defined_trace(uint32_t query, uint32_t pack, size_t power) const {
    Coefficients sum{}, place, turned;
    const uint32_t columns = std::min(kOrbitWords, sizes_.columns - pack * kOrbitWords);
    for (uint32_t c = 0; c < columns; ++c) {
      place.fill(0);
      place[c] = field_.inverse(powers());
      ntt_->forward(place);
      ring::apply({power}, hint(query, pack * kOrbitWords + c), turned);
      ntt_->add_products(place, turned, sum);
    }
    return sum;
  }

  // The response as it is sent, from what is in the squares and among the products, or from
  // definitions alone.
  std::vector<uint8_t> expected_response(uint32_t query) const {
    return response_from(
        query, [&](uint32_t pack, size_t power) { return trace(query, pack, power); },
        [&](uint32_t column) { return products_[uint64_t{query} * sizes_.columns + column]; });
  }
  std::vector<uint8_t> expected_response_by_definition(uint32_t query) const {
    return response_from(
        query, [&](uint32_t pack, size_t power) { return defined_trace(query, pack, power); },
        [&](uint32_t column) { return product(query, column); });
  }
  std::span<const uint8_t> found_response(uint32_t query) const {
    return {reinterpret_cast<const uint8_t*>(responses_.data() + query * response_pitch()),
            spec().response_bytes()};
  }

 private:
  SecondLevelSpec sizes_of_spec() const {
    return {sizes_.rows,
            sizes_.columns,
            sizes_.word_bits,
            sizes_.query_bits,
            sizes_.mask_bits,
            sizes_.response_bits,
            sizes_.key_order,
            {},
            {}};
  }
  uint64_t numbers_at() const { return (sizes_.key_order > 0 ? 2 : 1) * ring::kKeyWords; }
  uint64_t response_pitch() const {
    return second_response_words((sizes_.columns + kOrbitWords - 1) / kOrbitWords, sizes_.mask_bits,
                                 sizes_.response_bits);
  }

  static void fill_with_values(support::SeededRandom& random, std::span<uint32_t> values) {
    for (uint32_t& value : values) {
      value = static_cast<uint32_t>(random.below(ring::kPackingModulus));
    }
  }
  // The first and the last ones are the largest and the smallest that there are.
  static void fill_with_numbers(support::SeededRandom& random, uint32_t* to, uint64_t count,
                                uint32_t bits, std::vector<uint32_t>& numbers) {
    std::vector<uint32_t> words = random.words(count);
    words.front() = 0xffffffff, words.back() = 0;
    for (uint32_t& word : words) {
      numbers.push_back(word >> (32 - bits));
      word = restore_word(numbers.back(), bits);
    }
    write_bit_sequence(words, bits,
                       {reinterpret_cast<uint8_t*>(to), bit_sequence_bytes(count, bits)});
  }
  static Coefficients row(const uint32_t* words) {
    Coefficients copied;
    std::copy_n(words, copied.size(), copied.begin());
    return copied;
  }
  static uint32_t lowered(uint32_t word, uint32_t bits) {
    return restore_word(ring::switch_from_q(word, bits), bits);
  }

  template <class Trace, class Product>
  std::vector<uint8_t> response_from(uint32_t query, const Trace& trace_of,
                                     const Product& product_of) const {
    const size_t step = ring::kOrbit / powers();
    std::vector<uint8_t> sent(spec().response_bytes());
    std::span<uint8_t> rest(sent);
    std::vector<uint32_t> words;
    for (uint32_t pack = 0; pack < spec().pack_count(); ++pack) {
      Coefficients mask = trace_of(pack, (powers() - 1) * step), taken{};
      for (size_t i = powers() - 1; i-- > 0;) {
        mask = switched(query, {i * step}, mask, trace_of(pack, i * step), taken);
      }
      ntt_->inverse(mask);
      ntt_->inverse(taken);
      for (uint32_t& word : mask) word = lowered(word, sizes_.mask_bits);
      const uint64_t mask_bytes = bit_sequence_bytes(mask.size(), sizes_.mask_bits);
      write_bit_sequence(mask, sizes_.mask_bits, rest.first(mask_bytes));
      rest = rest.subspan(mask_bytes);
      for (uint32_t k = pack * kOrbitWords; k < std::min(sizes_.columns, (pack + 1) * kOrbitWords);
           ++k) {
        words.push_back(
            lowered(field_.subtract(product_of(k), taken[k % kOrbitWords]), sizes_.response_bits));
      }
    }
    write_bit_sequence(words, sizes_.response_bits, rest);
    return sent;
  }

  Coefficients switched(uint32_t query, const ring::Automorphism& to, Coefficients mask,
                        Coefficients next, Coefficients& taken) const {
    ntt_->inverse(mask);
    for (size_t k = 0; k < ring::kDigits; ++k) {
      Coefficients digits, turned;
      for (size_t i = 0; i < ring::kDimension; ++i) {
        digits[i] = field_.reduce_signed(ring::decompose(mask[i], field_)[k]);
      }
      ntt_->forward(digits);
      ring::apply(to, row(key_masks_.data() + k * ring::kDimension), turned);
      ntt_->add_products(digits, turned, next);
      ring::apply(to, row(key(query) + k * ring::kDimension), turned);
      ntt_->add_products(digits, turned, taken);
    }
    return next;
  }

  const ring::PrimeField field_{ring::kPackingModulus};
  const std::unique_ptr<const ring::Ntt> ntt_ = ring::portable_ntt(ring::kPackingModulus);
  const HostRing ring_;
  const SecondLevelSizes sizes_;
  const uint64_t word_pitch_, extra_pitch_;
  const Memory<uint32_t> words_, extras_, blocks_, key_masks_, squares_, products_, responses_;
  std::vector<uint32_t> first_words_, numbers_;  // of all queries
};

}  // namespace blindfuse::emulator
