// A small matrix with queries, and the CPU's responses and products; and what any matrix answers by
// the definition.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "cuda/cuda_engine.h"
#include "host/cpu/cpu_engine.h"
#include "host/engines/canary_response.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/ring/prime_field.h"
#include "tests/client/seeded_random.h"
#include "tests/support.h"

namespace blindfuse::plain_product {

// Words such as queries have: the lowest 32 - bits bits are 0.
inline std::vector<uint32_t> query_words(support::SeededRandom& random, uint64_t rows,
                                         uint32_t bits) {
  std::vector<uint32_t> words(rows);
  for (uint32_t& word : words) word = random.u32() >> (32 - bits) << (32 - bits);
  return words;
}

// The words times the matrix, column by column, modulo 2^32.
inline std::vector<uint32_t> product(std::span<const uint8_t> columns,
                                     std::span<const uint32_t> words) {
  const uint64_t rows = words.size();
  std::vector<uint32_t> sums(columns.size() / rows);
  for (uint64_t c = 0; c < sums.size(); ++c) {
    for (uint64_t r = 0; r < rows; ++r) {
      sums[c] +=
          words[r] * static_cast<uint32_t>(int32_t{static_cast<int8_t>(columns[c * rows + r])});
    }
  }
  return sums;
}

// A packing table of random words.
inline SharedPackingTable random_table(support::SeededRandom& random) {
  const std::shared_ptr<uint32_t[]> table(new uint32_t[kTableWords]);
  for (size_t i = 0; i < kTableWords; ++i) {
    table[i] = static_cast<uint32_t>(random.below(ring::kPackingModulus));
  }
  return {table, table.get()};
}

inline std::vector<uint8_t> sequence(const std::vector<uint32_t>& words, uint32_t bits) {
  std::vector<uint8_t> bytes(bit_sequence_bytes(words.size(), bits));
  write_bit_sequence(words, bits, bytes);
  return bytes;
}

}  // namespace blindfuse::plain_product

namespace blindfuse::small_problem {

inline constexpr uint64_t kRows = 200, kColumns = 37, kShared = 20;
inline constexpr WireBits kBits{26, 11};
inline constexpr size_t kQueries = 5;

// A matrix with queries, and the CPU's responses and products.
class Problem {
 public:
  Problem() {
    support::SeededRandom random(150);
    columns_ = random.octets(kRows * kColumns);
    queries_ = random.octets(kQueries * query_bytes());
    for (uint32_t& word : words_) word = random.u32() >> 6 << 6;  // as many bits as queries have
    const auto cpu = make_cpu_engine_maker("", 1)->make_engine(kRows, kColumns);
    cpu->set_columns(0, columns_);
    cpu->seal();
    responses_ = ask(*cpu->make_answer_pipeline(kBits, kQueries, kQueries));
    products_ = product(*cpu);
    Layout layout;
    layout.lwe = find_lwe_params("lwe-1288");
    layout.row_count = kRows;
    layout.query_bits = kBits.query;
    layout.response_bits = kBits.response;
    canary_.words = words_;
    canary_.products = products_;
    complete_canary(canary_, layout, {}, 1, seeded_random(151));
  }

  std::span<const uint8_t> columns(uint64_t first, uint64_t count) const {
    return std::span(columns_).subspan(first * kRows, count * kRows);
  }
  const Canary& canary() const { return canary_; }
  void expect_right(AnswerPipeline& pipeline) const { EXPECT_EQ(ask(pipeline), responses_); }
  void expect_right(Engine& engine) const { EXPECT_EQ(product(engine), products_); }
  // The same by the pipeline that makes hints.
  void expect_right_panels(Engine& engine) const {
    const auto panels = engine.make_panel_products(1, kRows);
    std::ranges::copy(words_, panels->buffer().begin());
    panels->add({panels->buffer().data(), 1, kRows}, {0, kRows});
    EXPECT_TRUE(std::ranges::equal(panels->finish(), products_));
  }

 private:
  static uint64_t query_bytes() { return bit_sequence_bytes(kRows, kBits.query); }
  std::vector<uint8_t> ask(AnswerPipeline& pipeline) const {
    const std::span queries(queries_);
    for (size_t i = 0; i < kQueries; ++i) {
      pipeline.put(i, queries.subspan(i * query_bytes(), query_bytes()));
    }
    // Two batches overlap where they can.
    pipeline.begin(0, 2);
    std::vector<uint8_t> responses;
    const auto take = [&] {
      const auto some = pipeline.finish();
      responses.insert(responses.end(), some.begin(), some.end());
    };
    if (pipeline.depth() < 2) take();
    pipeline.begin(2, kQueries - 2);
    if (pipeline.depth() >= 2) take();
    take();
    return responses;
  }
  std::vector<uint32_t> product(Engine& engine) const {
    std::vector<uint32_t> product(kColumns);
    engine.multiply({words_.data(), 1, kRows}, {0, kRows}, {product.data(), 1, kColumns});
    return product;
  }

  std::vector<uint8_t> columns_, queries_;
  std::vector<uint32_t> words_ = std::vector<uint32_t>(kRows);
  std::vector<uint8_t> responses_;
  std::vector<uint32_t> products_;
  Canary canary_;
};

inline const Problem& problem() {
  static const Problem problem;
  return problem;
}

inline std::unique_ptr<Engine> engine_with(uint64_t first_column,
                                           const std::vector<std::string>& kernels = {}) {
  auto engine = make_cuda_engine(kernels, 0, kRows, kColumns);
  engine->set_columns(first_column, problem().columns(first_column, kColumns - first_column));
  return engine;
}

// As a server has it: with products that are checked.
inline std::unique_ptr<AnswerPipeline> pipeline_of(Engine& engine) {
  engine.seal();
  engine.check_kernels(problem().canary(), kQueries);
  return engine.make_answer_pipeline(kBits, kQueries, kQueries);
}

// Packing tables of zeros.
inline std::vector<SharedPackingTable> zero_tables(size_t count) {
  const std::shared_ptr<uint32_t[]> words(new uint32_t[kTableWords]());
  return {count, SharedPackingTable(words, words.get())};
}

}  // namespace blindfuse::small_problem
