// Responses packed under clients' secrets, by every kind of engine: the same as from the
// definitions, whatever is in flight.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/engines/engine_factory.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/packing_table.h"
#include "tests/engine/engines_under_test.h"
#include "tests/engine/packed_reference.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using ring::kDimension;
using support::SeededRandom;

constexpr uint64_t kRows = 2048;

// Tables of random words below the packing modulus. All are views of one piece of memory, a page
// apart, and so differ almost everywhere.
std::vector<SharedPackingTable> random_tables(SeededRandom& random, size_t count) {
  constexpr size_t kApart = 1024;
  const size_t words = kTableWords + kApart * (count - 1);
  const std::shared_ptr<uint32_t[]> memory(
      static_cast<uint32_t*>(std::aligned_alloc(4096, (4 * words + 4095) / 4096 * 4096)),
      [](uint32_t* all) { std::free(all); });
  for (size_t i = 0; i < words; ++i) {
    memory[i] = static_cast<uint32_t>(uint64_t{random.u32()} * ring::kPackingModulus >> 32);
  }
  std::vector<SharedPackingTable> tables;
  for (size_t p = 0; p < count; ++p) tables.emplace_back(memory, memory.get() + kApart * p);
  return tables;
}

// Packed words, and keys after them.
std::vector<uint8_t> random_query(SeededRandom& random, uint64_t word_count, uint32_t bits) {
  std::vector<uint8_t> query = random.octets(bit_sequence_bytes(word_count, bits));
  for (size_t i = 0; i < ring::kKeyWords; ++i) {
    const auto word = static_cast<uint32_t>(random.below(ring::kPackingModulus));
    for (unsigned byte = 0; byte < 4; ++byte)
      query.push_back(static_cast<uint8_t>(word >> 8 * byte));
  }
  return query;
}

// An engine with a matrix, and queries in the slots of its pipeline.
class PackedBatches {
 public:
  PackedBatches(const std::string& name, SeededRandom& random, WireBits bits, uint64_t columns,
                size_t slots, size_t batch_max, size_t bucket_count = 1)
      : bits_(bits),
        bucket_count_(bucket_count),
        tables_(random_tables(random, (columns + kPackColumns - 1) / kPackColumns)),
        engine_(make_engine(name, kRows, columns, 2)) {
    const std::vector<uint8_t> matrix = random.octets(kRows * columns);
    engine_->set_columns(0, matrix);
    engine_->seal();
    const uint64_t bucket_bytes = matrix.size() / bucket_count;
    for (size_t i = 0; i < bucket_count; ++i) {
      buckets_.push_back(make_engine("cpu:portable", kRows, columns / bucket_count, 1));
      buckets_.back()->set_columns(0, std::span(matrix).subspan(i * bucket_bytes, bucket_bytes));
      buckets_.back()->seal();
    }
    pipeline_ = engine_->make_packed_answer_pipeline(bits, tables_, slots, batch_max, nullptr,
                                                     bucket_count);
    for (size_t slot = 0; slot < slots; ++slot) {
      queries_.push_back(random_query(random, bucket_count * kRows, bits.query));
      pipeline_->put(slot, queries_.back());
    }
  }

  size_t depth() const { return pipeline_->depth(); }
  bool has_begun() const { return !begun_.empty(); }

  void begin(size_t first, size_t count) {
    pipeline_->begin(first, count);
    begun_.emplace_back(first, count);
  }
  void move(size_t from, size_t to) {
    pipeline_->move(from, to);
    queries_[to] = queries_[from];
  }

  void finish_and_compare() {
    const auto [first, count] = begun_.front();
    begun_.pop_front();
    const std::span<const uint8_t> responses = pipeline_->finish();
    const size_t each = bit_sequence_bytes(engine_->column_count(), bits_.response);
    ASSERT_EQ(responses.size(), count * each);
    for (size_t i = 0; i < count; ++i) {
      ASSERT_TRUE(std::ranges::equal(responses.subspan(i * each, each), expected(first + i)))
          << "query " << i << " of " << count;
    }
  }

 private:
  std::vector<uint8_t> expected(size_t slot) const {
    const std::span<const uint8_t> query = queries_[slot];
    const size_t words_bytes = bit_sequence_bytes(bucket_count_ * kRows, bits_.query);
    std::vector<uint32_t> words(bucket_count_ * kRows), products(engine_->column_count());
    read_bit_sequence(query.first(words_bytes), bits_.query, 0, words);
    // Each bucket alone, in a matrix of its own.
    const size_t columns = products.size() / bucket_count_;
    for (size_t i = 0; i < bucket_count_; ++i) {
      buckets_[i]->multiply({words.data() + i * kRows, 1, kRows}, {0, kRows},
                            {products.data() + i * columns, 1, columns});
    }
    return support::packed_reference(products, tables_, query.subspan(words_bytes), bits_.response);
  }

  const WireBits bits_;
  const size_t bucket_count_;
  const std::vector<SharedPackingTable> tables_;
  const std::unique_ptr<Engine> engine_;
  std::vector<std::unique_ptr<Engine>> buckets_;
  std::unique_ptr<AnswerPipeline> pipeline_;
  std::vector<std::vector<uint8_t>> queries_;
  std::deque<std::pair<size_t, size_t>> begun_;
};

class PackedAnswerPipelineTest : public testing::TestWithParam<std::string> {};

// A GPU's own choice of kernels; DevicePackedAnswerPipelineTest has each of them.
std::vector<std::string> packing_engine_names() {
  std::vector<std::string> names = engine_names();
  std::erase_if(names, [](const std::string& name) { return name != "cuda" && name != "cpu"; });
  return names;
}

INSTANTIATE_TEST_SUITE_P(Engines, PackedAnswerPipelineTest,
                         testing::ValuesIn(packing_engine_names()), support::name_of_test);

// Small enough for tools that make a device some hundred times slower.
TEST_P(PackedAnswerPipelineTest, SanitizerSample) {
  if (support::kIsEmulated) GTEST_SKIP() << "the next one is enough for an emulator";
  SeededRandom random(150);
  PackedBatches problem(GetParam(), random, {27, 11}, 2048, 1, 1);
  problem.begin(0, 1);
  problem.finish_and_compare();
}

TEST_P(PackedAnswerPipelineTest, AnswersAsDefined) {
  SeededRandom random(151);
  PackedBatches problem(GetParam(), random, {26, 10}, 2048 + 333, 6, 3);
  // As when those between two queries are not wanted any more.
  problem.move(2, 1);
  problem.begin(0, 2);
  EXPECT_EQ(problem.depth(), GetParam() == "cuda" ? 2u : 1u);
  if (problem.depth() == 1) problem.finish_and_compare();
  problem.begin(3, 3);
  while (problem.has_begun()) problem.finish_and_compare();
}

// Three buckets of 691 columns: the first pack has columns of two, and so has the second.
TEST_P(PackedAnswerPipelineTest, AnswersWithTheWordsOfEachBucket) {
  SeededRandom random(154);
  PackedBatches problem(GetParam(), random, {27, 11}, 3 * 691, 4, 3, 3);
  problem.move(3, 1);
  problem.begin(0, 2);
  if (problem.depth() == 1) problem.finish_and_compare();
  problem.begin(2, 1);
  while (problem.has_begun()) problem.finish_and_compare();
}

class DevicePackedAnswerPipelineTest : public PackedAnswerPipelineTest {};

// The kernels of scans that sum over packing tables, too: with others, one of these does.
std::vector<std::string> packing_device_names() {
  std::vector<std::string> names = support::device_engine_names();
  std::erase_if(names, [](const std::string& name) {
    return name != "cuda:dp4a" && name != "cuda:mma" && name != "cuda:wgmma";
  });
  return names;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DevicePackedAnswerPipelineTest);
INSTANTIATE_TEST_SUITE_P(Engines, DevicePackedAnswerPipelineTest,
                         testing::ValuesIn(packing_device_names()), support::name_of_test);

TEST_P(DevicePackedAnswerPipelineTest, AnswersASmallBatch) {
  SeededRandom random(153);
  PackedBatches problem(GetParam(), random, {27, 11}, 700, 2, 2);
  problem.begin(0, 2);
  problem.finish_and_compare();
}

// Tiles of queries that are full, and begun, and several, and one pack and many. The CPU's are
// those of tests/packing/batch_packer_test.cpp.
TEST_P(DevicePackedAnswerPipelineTest, AnswersBatchesOfEverySize) {
  if (support::kIsEmulated) GTEST_SKIP() << "for real devices; an emulator would take minutes";
  SeededRandom random(152);
  struct Case {
    uint64_t packs;
    std::vector<size_t> batches;
  };
  for (const auto& [packs, batches] :
       {Case{1, {1, 15, 16, 17, 33}}, Case{9, {3, 18}}, Case{17, {16}}}) {
    PackedBatches problem(GetParam(), random, {28, 12}, 2048 * packs - random.below(2048), 40, 33);
    for (const size_t count : batches) {
      problem.begin(random.below(40 - count + 1), count);
      problem.finish_and_compare();
    }
  }
}

}  // namespace
}  // namespace blindfuse
