// Batches on several threads: the same as one query and one table at a time.
#include "host/cpu/packing/batch_packer.h"

#include <gtest/gtest.h>

#include <random>

#include "host/cpu/packing/packing_keys.h"
#include "src/arithmetic/little_endian.h"
#include "tests/packing/ring_kernel_names.h"

namespace blindfuse {
namespace {

using ring::kDimension;

constexpr size_t kColumnsOfThreePacks = 2 * kPackColumns + 77;
constexpr size_t kTables = 3;
constexpr size_t kQueries = 18;

class BatchPackerTest : public ::testing::TestWithParam<RingKernel> {
 protected:
  BatchPackerTest() {
    for (size_t t = 0; t < kTables; ++t) {
      auto words = std::make_shared<uint32_t[]>(kTableWords);
      for (size_t i = 0; i < kTableWords; ++i) words[i] = number();
      tables_.push_back(words);
    }
    for (size_t q = 0; q < kQueries; ++q) {
      std::vector<uint8_t> bytes(ring::kKeyBytes);
      for (size_t i = 0; i < ring::kKeyWords; ++i) store_le(bytes.data() + 4 * i, number());
      keys_.push_back(PackingKeys::read(bytes));
      std::vector<uint32_t>& words = words_.emplace_back(kColumnsOfThreePacks);
      for (uint32_t& word : words) word = static_cast<uint32_t>(random_());
    }
  }

  // Numbers below the modulus that are quick to make.
  uint32_t number() {
    return static_cast<uint32_t>((random_() >> 32) * uint64_t{ring::kPackingModulus} >> 32);
  }

  std::vector<uint32_t> one_at_a_time(size_t query) {
    const ResponsePacker packer(ring_kernels().back());
    std::vector<uint32_t> bodies(kTables * kDimension);
    for (size_t t = 0; t < kTables; ++t) {
      const size_t first = t * kPackColumns;
      const ResponsePacker::Task task{
          keys_[query].words(),
          std::span(words_[query]).subspan(first, std::min(kPackColumns, kColumnsOfThreePacks - first)),
          std::span(bodies).subspan(t * kDimension).first<kDimension>()};
      packer.pack(PackingTable(tables_[t].get(), kTableWords), std::span(&task, 1));
    }
    return bodies;
  }

  std::mt19937_64 random_{5};
  std::vector<SharedPackingTable> tables_;
  std::vector<PackingKeys> keys_;
  std::vector<std::vector<uint32_t>> words_;
};

TEST_P(BatchPackerTest, PacksEveryQueryAsIfItWereAlone) {
  std::vector<std::vector<uint32_t>> expected;
  for (size_t q = 0; q < kQueries; ++q) expected.push_back(one_at_a_time(q));
  // Batches by what there is for them, however small they are.
  RingKernel kernel = GetParam();
  BatchSums sums{};
  if (kernel.batch != nullptr) {
    sums = *kernel.batch;
    sums.products_min = 12;
    sums.tables_max = 2;
    kernel.batch = &sums;
  }
  WorkerThreads threads(3);
  BatchPacker packer(tables_, threads, kernel);
  // More than before, and fewer, in memory that was used.
  for (const size_t count : {1u, 5u, 18u, 4u, 2u}) {
    std::vector<std::vector<uint32_t>> bodies(count, std::vector<uint32_t>(kTables * kDimension));
    std::vector<BatchPacker::Query> queries;
    for (size_t q = 0; q < count; ++q) {
      queries.push_back({keys_[q].words(), words_[q], bodies[q]});
    }
    packer.pack(queries);
    for (size_t q = 0; q < count; ++q) EXPECT_TRUE(bodies[q] == expected[q]) << count << " " << q;
  }
}

INSTANTIATE_TEST_SUITE_P(All, BatchPackerTest, ::testing::ValuesIn(ring_kernels()), name_of_kernel);

}  // namespace
}  // namespace blindfuse
