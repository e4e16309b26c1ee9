// The pipelines of every engine: the same responses as by unpacking, multiplying and rounding one
// query after another, whatever is in flight.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "host/engines/engine_factory.h"
#include "src/arithmetic/bit_sequence.h"
#include "tests/engine/engines_under_test.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using support::SeededRandom;

class AnswerPipelineTest : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Engines, AnswerPipelineTest, testing::ValuesIn(engine_names()),
                         support::name_of_test);

std::vector<uint8_t> expected_response(Engine& engine, const std::vector<uint8_t>& query,
                                       WireBits bits) {
  std::vector<uint32_t> words(engine.row_count());
  read_bit_sequence(query, bits.query, 0, words);
  std::vector<uint32_t> products(engine.column_count());
  engine.multiply({words.data(), 1, words.size()}, {0, words.size()},
                  {products.data(), 1, products.size()});
  std::vector<uint8_t> response(bit_sequence_bytes(products.size(), bits.response));
  write_bit_sequence(products, bits.response, response);
  return response;
}

TEST_P(AnswerPipelineTest, AnswersAsOneByOne) {
  SeededRandom random(120);
  for (const WireBits bits : {WireBits{24, 9}, {25, 10}, {26, 11}, {27, 13}, {32, 32}}) {
    const uint64_t rows = 64 * random.between(1, 20);
    const uint64_t columns = random.between(1, 300);
    const auto engine = make_engine(GetParam(), rows, columns, 2);
    engine->set_columns(0, random.octets(rows * columns));
    engine->seal();
    constexpr size_t kSlots = 23, kBatchMax = 9;
    const auto pipeline = engine->make_answer_pipeline(bits, kSlots, kBatchMax);
    std::vector<std::vector<uint8_t>> queries(kSlots), expected(kSlots);
    for (size_t slot = 0; slot < kSlots; ++slot) {
      queries[slot] = random.octets(bit_sequence_bytes(rows, bits.query));
      expected[slot] = expected_response(*engine, queries[slot], bits);
      pipeline->put(slot, queries[slot]);
    }
    std::deque<std::pair<size_t, size_t>> begun;
    const auto finish = [&] {
      const auto [first, count] = begun.front();
      begun.pop_front();
      const std::span<const uint8_t> responses = pipeline->finish();
      const size_t each = bit_sequence_bytes(columns, bits.response);
      ASSERT_EQ(responses.size(), count * each);
      for (size_t i = 0; i < count; ++i) {
        ASSERT_TRUE(std::ranges::equal(responses.subspan(i * each, each), expected[first + i]))
            << rows << " x " << columns << ", query " << first + i;
      }
    };
    for (size_t first = 0; first < kSlots;) {
      if (begun.size() == pipeline->depth()) finish();
      const size_t count = std::min<size_t>(random.between(1, kBatchMax), kSlots - first);
      pipeline->begin(first, count);
      begun.emplace_back(first, count);
      first += count;
    }
    while (!begun.empty()) finish();
  }
}

// As when those between two queries are not wanted any more.
TEST_P(AnswerPipelineTest, QueriesMoveToOtherSlots) {
  SeededRandom random(122);
  const uint64_t rows = 64 * 5, columns = 40;
  const WireBits bits{26, 11};
  const auto engine = make_engine(GetParam(), rows, columns, 2);
  engine->set_columns(0, random.octets(rows * columns));
  engine->seal();
  const auto pipeline = engine->make_answer_pipeline(bits, 6, 4);
  std::vector<std::vector<uint8_t>> queries;
  for (size_t slot = 0; slot < 6; ++slot) {
    queries.push_back(random.octets(bit_sequence_bytes(rows, bits.query)));
    pipeline->put(slot, queries.back());
  }
  pipeline->move(2, 1);
  pipeline->move(5, 2);
  pipeline->begin(0, 3);
  const std::span<const uint8_t> responses = pipeline->finish();
  const size_t each = bit_sequence_bytes(columns, bits.response);
  ASSERT_EQ(responses.size(), 3 * each);
  const size_t sources[] = {0, 2, 5};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(std::ranges::equal(responses.subspan(i * each, each),
                                   expected_response(*engine, queries[sources[i]], bits)))
        << i;
  }
}

TEST_P(AnswerPipelineTest, PanelProductsAreThoseOfTheWholeMatrix) {
  SeededRandom random(121);
  for (const uint64_t panels : {1, 2, 7, 50, 103}) {
    const uint64_t rows = 64 * panels, columns = random.between(1, 40);
    const uint64_t count = panels == 7 ? 1 : random.between(1, 40);
    const auto engine = make_engine(GetParam(), rows, columns, 2);
    engine->set_columns(0, random.octets(rows * columns));
    engine->seal();
    const uint64_t rows_at_once = 64 * random.between(1, 10);
    const auto products = engine->make_panel_products(count, rows_at_once);
    const std::vector<uint32_t> plain = random.words(rows * count);
    std::vector<uint32_t> expected(count * columns), at_once(count * columns);
    engine->multiply({plain.data(), count, rows}, {0, rows}, {expected.data(), count, columns});
    // Panels of 64 words of every vector, as the public matrix has them.
    std::vector<uint32_t> words(plain.size());
    for (size_t b = 0; b < count; ++b) {
      for (uint64_t r = 0; r < rows; ++r) {
        words[(r / 64 * count + b) * 64 + r % 64] = plain[b * rows + r];
      }
    }
    engine->multiply({words.data(), count, 64, 64 * count}, {0, rows},
                     {at_once.data(), count, columns});
    EXPECT_TRUE(at_once == expected) << panels << " panels";
    for (uint64_t first = 0; first < rows; first += rows_at_once) {
      const RowRange range{first, std::min(rows, first + rows_at_once)};
      const std::span<uint32_t> buffer = products->buffer();
      std::copy_n(words.begin() + static_cast<ptrdiff_t>(first * count), range.size() * count,
                  buffer.begin());
      products->add({buffer.data(), count, 64, 64 * count}, range);
    }
    EXPECT_TRUE(std::ranges::equal(products->finish(), expected)) << panels << " panels";
  }
}

}  // namespace
}  // namespace blindfuse
