// Responses of two levels, by every kind of engine: what SecondLevelPacker makes of the first
// level's words, whatever is in flight.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "host/cpu/packing/packing_keys.h"
#include "host/cpu/packing/second_level_packer.h"
#include "host/engines/engine_factory.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/ring/modulus_switch.h"
#include "src/arithmetic/second_level_spec.h"
#include "tests/engine/engines_under_test.h"
#include "tests/engine/packed_reference.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using ring::kDimension;
using support::SeededRandom;

constexpr uint64_t kMatrixRows = 2048;
// Five shards of three columns, two shards side by side: the last row has three columns of six.
constexpr uint64_t kColumns = 15;
constexpr WireBits kBits{26, 11};

// A table of zeros, which takes nothing off the products.
SharedPackingTable zero_table() {
  auto* words = static_cast<uint32_t*>(std::calloc(kTableWords, sizeof(uint32_t)));
  return {words, [](const uint32_t* table) { std::free(const_cast<uint32_t*>(table)); }};
}

class SecondLevelPipelineTest : public testing::TestWithParam<std::string> {
 protected:
  SecondLevelPipelineTest() : blocks_(kDimension), key_masks_(ring::kKeyWords) {
    for (auto* values : {&blocks_, &key_masks_}) {
      for (uint32_t& value : *values) value = random_value();
    }
    spec_ = {3, 6, kBits.response, 19, 18, 21, 0, blocks_, key_masks_};
    engine_ = make_engine(GetParam(), kMatrixRows, kColumns, 2);
    engine_->set_columns(0, random_.octets(kMatrixRows * kColumns));
    engine_->seal();
  }

  uint32_t random_value() { return static_cast<uint32_t>(random_.below(ring::kPackingModulus)); }

  // Of the first level: packed words, and a key after them.
  std::vector<uint8_t> first_query() {
    std::vector<uint8_t> query = random_.octets(first_bytes_);
    for (size_t i = 0; i < ring::kKeyWords; ++i) {
      const uint32_t word = random_value();
      for (unsigned byte = 0; byte < 4; ++byte) {
        query.push_back(static_cast<uint8_t>(word >> 8 * byte));
      }
    }
    return query;
  }
  std::vector<uint8_t> query() {
    std::vector<uint8_t> query = first_query();
    const std::vector<uint32_t> numbers = random_.words(spec_.row_count);
    std::vector<uint8_t> sent(spec_.query_bytes());
    write_bit_sequence(numbers, spec_.query_bits, sent);
    query.insert(query.end(), sent.begin(), sent.end());
    return query;
  }

  std::vector<uint32_t> products(std::span<const uint8_t> query) const {
    std::vector<uint32_t> words(kMatrixRows), products(kColumns);
    read_bit_sequence(query.first(first_bytes_), kBits.query, 0, words);
    engine_->multiply({words.data(), 1, kMatrixRows}, {0, kMatrixRows},
                      {products.data(), 1, kColumns});
    return products;
  }
  std::vector<uint8_t> first_response(std::span<const uint8_t> query) const {
    return support::packed_reference(products(query), tables_,
                                     query.subspan(first_bytes_, ring::kKeyBytes), kBits.response);
  }

  std::vector<uint8_t> expected(std::span<const uint8_t> query) const {
    std::vector<uint32_t> words(kColumns), numbers(spec_.row_count);
    read_bit_sequence(first_response(query), kBits.response, 0, words);
    read_bit_sequence(query.last(spec_.query_bytes()), spec_.query_bits, 0, numbers);
    for (uint32_t& number : numbers) {
      number = ring::switch_to_q(number >> (32 - spec_.query_bits), spec_.query_bits);
    }
    std::vector<int32_t> entries(uint64_t{spec_.row_count} * spec_.column_count);
    for (size_t c = 0; c < kColumns; ++c) {
      entries[c] =
          static_cast<int32_t>(words[c] >> (32 - kBits.response)) - (1 << (kBits.response - 1));
    }
    std::array<uint32_t, PackingKeys::kWords> key;
    PackingKeys::unpack(query.subspan(first_bytes_, ring::kKeyBytes), key);
    std::array<uint32_t, kDimension> mask{};
    std::array<uint32_t, kPackColumns> body{};
    SecondLevelPacker(blocks_, 0, key_masks_)
        .pack({key.data(), numbers, entries, spec_.column_count, spec_.column_count, mask, body});
    const auto lower = [](std::span<uint32_t> values, uint32_t bits) {
      for (uint32_t& value : values) value = restore_word(ring::switch_from_q(value, bits), bits);
    };
    const std::span<uint32_t> row = std::span(body).first(spec_.column_count);
    lower(mask, spec_.mask_bits);
    lower(row, spec_.response_bits);
    std::vector<uint8_t> sent(spec_.response_bytes());
    const uint64_t mask_bytes = bit_sequence_bytes(kDimension, spec_.mask_bits);
    write_bit_sequence(mask, spec_.mask_bits, std::span(sent).first(mask_bytes));
    write_bit_sequence(row, spec_.response_bits, std::span(sent).subspan(mask_bytes));
    return sent;
  }

  void expect_answers(AnswerPipeline& pipeline, const std::vector<std::vector<uint8_t>>& queries,
                      size_t first, size_t count) {
    const std::span<const uint8_t> responses = pipeline.finish();
    const size_t each = spec_.response_bytes();
    ASSERT_EQ(responses.size(), count * each);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_TRUE(
          std::ranges::equal(responses.subspan(i * each, each), expected(queries[first + i])))
          << "query " << first + i;
    }
  }

  SeededRandom random_{170};
  const size_t first_bytes_ = bit_sequence_bytes(kMatrixRows, kBits.query);
  const std::vector<SharedPackingTable> tables_ = {zero_table()};
  std::vector<uint32_t> blocks_, key_masks_;
  SecondLevelSpec spec_;
  std::unique_ptr<Engine> engine_;
};

std::vector<std::string> two_level_engine_names() {
  std::vector<std::string> names = engine_names();
  std::erase_if(names, [](const std::string& name) { return name != "cuda" && name != "cpu"; });
  return names;
}

INSTANTIATE_TEST_SUITE_P(Engines, SecondLevelPipelineTest,
                         testing::ValuesIn(two_level_engine_names()), support::name_of_test);

// Small enough for tools that make a device some hundred times slower.
TEST_P(SecondLevelPipelineTest, SanitizerSample) {
  if (support::kIsEmulated) GTEST_SKIP() << "the next one is enough for an emulator";
  const auto pipeline = engine_->make_packed_answer_pipeline(kBits, tables_, 1, 1, &spec_);
  const std::vector<std::vector<uint8_t>> queries = {query()};
  pipeline->put(0, queries.front());
  pipeline->begin(0, 1);
  expect_answers(*pipeline, queries, 0, 1);
}

// The CPU engine, which has two threads, takes the second batch in three turns, the last one with a
// single query.
TEST_P(SecondLevelPipelineTest, AnswersWithTheWordsOfARow) {
  const size_t many = GetParam() == "cpu" ? 5 : 2;
  const auto pipeline =
      engine_->make_packed_answer_pipeline(kBits, tables_, many + 1, many, &spec_);
  std::vector<std::vector<uint8_t>> queries;
  for (size_t slot = 0; slot <= many; ++slot) {
    queries.push_back(query());
    pipeline->put(slot, queries.back());
  }
  pipeline->move(many, 0);
  queries[0] = queries[many];
  pipeline->begin(0, 1);
  if (pipeline->depth() == 1) expect_answers(*pipeline, queries, 0, 1);
  pipeline->begin(1, many);
  if (pipeline->depth() > 1) expect_answers(*pipeline, queries, 0, 1);
  expect_answers(*pipeline, queries, 1, many);
}

}  // namespace
}  // namespace blindfuse
