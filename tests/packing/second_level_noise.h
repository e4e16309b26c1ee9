// The noise of the second level's words, term by term, from real queries at full size
// (docs/PARAMETERS.md, section 7).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <ostream>
#include <span>
#include <utility>
#include <vector>

#include "client/ring_query.h"
#include "host/cpu/packing/packing_keys.h"
#include "host/cpu/packing/second_level_packer.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/layout.h"
#include "src/arithmetic/ring/modulus_switch.h"
#include "src/arithmetic/ring/ntt.h"
#include "src/protocol/public_polynomials.h"
#include "tests/client/seeded_random.h"
#include "tests/support.h"

namespace blindfuse {

enum class SecondEntries {
  kUniform,  // as the first level's words are
  kLargest,  // -2^(rb - 1) or 2^(rb - 1) - 1, so that noise is as large as it can be
};

struct SecondNoiseCase {
  const char* name;
  uint32_t row_count;
  uint32_t key_order;  // 0: the packing key, and rows of 1024 columns; or else rows of as many
  uint32_t word_bits;
  uint32_t query_bits;
  uint32_t mask_bits;
  uint32_t response_bits;
  SecondEntries entries;
  size_t query_count;
  uint64_t seed;

  uint32_t column_count() const {
    return key_order > 0 ? key_order : static_cast<uint32_t>(kPackColumns);
  }
};

// Found by Google Test, which would print the bytes of pointers.
inline void PrintTo(const SecondNoiseCase& asked, std::ostream* out) { *out << asked.name; }

// In units of which 2^32 are one turn; the names are those of the section. Each list has a number
// for each column of each query, except row_errors.
struct SecondNoiseTerms {
  std::vector<double> row_errors;  // e': of b2 as the server raises it, for each row of each query
  std::vector<double> f1, f2, f3, f4;
  std::vector<double> entry_squares;  // sum of the squares of a column's entries
};

// Asks queries, each with a secret, keys and errors of its own by the client's code, for a random
// row of entries of its own, and keeps what the packer's words are off by.
class SecondNoiseQueries {
 public:
  explicit SecondNoiseQueries(const SecondNoiseCase& asked)
      : case_(asked),
        layout_(layout_of(asked)),
        random_(asked.seed),
        blocks_(polynomials_.second_blocks(asked.row_count)),
        packer_(blocks_, asked.key_order,
                asked.key_order > 0 ? polynomials_.short_key_masks() : polynomials_.key_masks()) {}

  SecondNoiseTerms ask() {
    const RingQueryMaker maker(polynomials_, layout_.row_count, {case_.row_count, case_.key_order});
    const RandomSource client = seeded_random(case_.seed + 1);
    constexpr size_t kTogether = 32;  // each takes some 80 KB
    for (size_t done = 0; done < case_.query_count; done += kTogether) {
      const size_t count = std::min(kTogether, case_.query_count - done);
      for (PreparedQuery& query : maker.make(count, client)) ask_one(std::move(query));
    }
    return std::move(terms_);
  }

 private:
  using Words = std::array<uint32_t, ring::kDimension>;
  using Columns = std::array<uint32_t, kPackColumns>;

  // Shards whose words fill a row's columns.
  static Layout layout_of(const SecondNoiseCase& asked) {
    constexpr uint32_t kRecordBytes = 32;
    const uint32_t group_shards = asked.column_count() / kRecordBytes;
    Layout layout;
    layout.kind = DatabaseKind::kIndex;
    layout.key_count = 1;
    layout.shard_count = asked.row_count * group_shards;
    layout.row_count = ring::kDimension;
    layout.arity = 1;
    layout.record = {0, 0, kRecordBytes};
    layout.lwe = &default_lwe_params(Mode::kPacked);
    layout.response_bits = asked.word_bits;
    layout.second = SecondLevel{group_shards, asked.query_bits, asked.mask_bits,
                                asked.response_bits, asked.key_order};
    return layout;
  }

  void ask_one(PreparedQuery query) {
    const auto shard = static_cast<uint32_t>(random_.below(layout_.shard_count));
    std::vector<uint8_t> sent(layout_.query_bytes());
    const KeyPlace place = {.shard = shard};
    const SecretBuffer<uint32_t> secret =
        std::move(query).encrypt({&place, 1}, layout_, sent).take();
    const auto numbers = std::span(sent).last(layout_.second_query_bytes());
    const auto keys = std::span(sent).first(sent.size() - numbers.size());
    const PackingKeys key = PackingKeys::read(keys.last(ring::kKeyBytes));
    std::vector<uint32_t> words(case_.row_count);
    read_bit_sequence(numbers, case_.query_bits, 0, words);
    for (uint32_t& word : words) word = raised(word >> (32 - case_.query_bits), case_.query_bits);
    make_entries();
    const size_t columns = case_.column_count();
    Words mask{};
    Columns body{};
    packer_.pack({key.words(), words, entries_, columns, columns, mask, body});
    const uint32_t row = shard / layout_.second->group_shards;
    add_terms(secret.span(), row, row_errors(secret.span(), words, row), mask, body);
  }

  void make_entries() {
    const int32_t half = 1 << (case_.word_bits - 1);
    entries_.resize(size_t{case_.row_count} * case_.column_count());
    for (int32_t& entry : entries_) {
      const auto word = static_cast<int32_t>(random_.u64() >> (64 - case_.word_bits));
      const bool is_uniform = case_.entries == SecondEntries::kUniform;
      entry = is_uniform ? word - half : word < half ? -half : half - 1;
    }
  }

  // b2 - s a2, without what asks for the row.
  std::vector<int64_t> row_errors(std::span<const uint32_t> secret, std::span<const uint32_t> words,
                                  uint32_t asked_row) const {
    Words values{}, product{};
    for (size_t i = 0; i < ring::kDimension; ++i) {
      values[i] = field().reduce_signed(static_cast<int32_t>(secret[i]));
    }
    ntt_->forward(values);
    std::vector<int64_t> errors;
    for (size_t row = 0; row < words.size(); ++row) {
      const size_t i = row % ring::kDimension;
      if (i == 0) {
        product.fill(0);
        ntt_->add_products(ring::Polynomial(blocks_.data() + row, ring::kDimension), values,
                           product);
        ntt_->inverse(product);
      }
      const uint32_t error = field().subtract(words[row], product[i]);
      errors.push_back(field().centered(field().subtract(error, row == asked_row ? one() : 0)));
    }
    return errors;
  }

  void add_terms(std::span<const uint32_t> secret, uint32_t row, const std::vector<int64_t>& errors,
                 const Words& mask, const Columns& body) {
    SecretBuffer<uint32_t> copy(secret.size());
    std::ranges::copy(secret, copy.span().begin());
    const RingDecoder decoder{DecodingSecret(std::move(copy))};
    Words sent_mask{};
    std::ranges::transform(mask, sent_mask.begin(), [&](uint32_t word) {
      return raised(ring::switch_from_q(word, case_.mask_bits), case_.mask_bits);
    });
    Columns exact{}, with_sent_mask{};
    decoder.phases(mask, body, exact);
    decoder.phases(sent_mask, body, with_sent_mask);
    const size_t columns = case_.column_count();
    std::vector<int64_t> f1(columns), squares(columns);
    for (size_t r = 0; r < errors.size(); ++r) {
      terms_.row_errors.push_back(static_cast<double>(errors[r]));
      const int32_t* const entries = entries_.data() + r * columns;
      for (size_t k = 0; k < columns; ++k) {
        f1[k] += errors[r] * entries[k];
        squares[k] += int64_t{entries[k]} * entries[k];
      }
    }
    for (size_t k = 0; k < columns; ++k) {
      const int64_t asked = int64_t{one()} * entries_[row * columns + k];
      const uint32_t sent_body =
          raised(ring::switch_from_q(body[k], case_.response_bits), case_.response_bits);
      terms_.entry_squares.push_back(static_cast<double>(squares[k]));
      terms_.f1.push_back(static_cast<double>(f1[k]));
      terms_.f2.push_back(apart(sent_body, body[k]));
      terms_.f3.push_back(apart(with_sent_mask[k], exact[k]));
      terms_.f4.push_back(apart(exact[k], modulo_q(asked + f1[k])));
    }
  }

  static uint32_t raised(uint32_t number, uint32_t bits) { return ring::switch_to_q(number, bits); }
  static uint32_t modulo_q(int64_t x) {
    constexpr int64_t kQ = ring::kPackingModulus;
    return static_cast<uint32_t>((x % kQ + kQ) % kQ);
  }
  double apart(uint32_t a, uint32_t b) const {
    return static_cast<double>(field().centered(field().subtract(a, b)));
  }
  const ring::PrimeField& field() const { return ntt_->field(); }
  // What a query adds to the number of its row.
  uint32_t one() const { return ring::switch_to_q(1, case_.word_bits); }

  const SecondNoiseCase case_;
  const Layout layout_;
  const ring::PublicPolynomials polynomials_{ChaChaKey{6}};
  const std::unique_ptr<const ring::Ntt> ntt_ = ring::portable_ntt(ring::kPackingModulus);
  support::SeededRandom random_;
  const std::vector<uint32_t> blocks_;
  const SecondLevelPacker packer_;
  std::vector<int32_t> entries_;
  SecondNoiseTerms terms_;
};

}  // namespace blindfuse
