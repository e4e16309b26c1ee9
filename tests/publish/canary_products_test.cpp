#include "host/database/loaded_database.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "tests/publish/builder_testing.h"
#include "tests/support.h"

namespace blindfuse::builder_testing {
namespace {

using support::SeededRandom;

// Engines of plain loops that are checked as those of a device are.
class DeviceEngineMaker : public support::PlainEngineMaker {
 public:
  bool computes_on_device() const override { return true; }
};

// By the definition, in 64 bits.
uint32_t product(const std::vector<uint32_t>& words, const uint8_t* column) {
  uint64_t sum = 0;
  for (size_t r = 0; r < words.size(); ++r) {
    sum += words[r] * static_cast<uint64_t>(int64_t{static_cast<int8_t>(column[r])});
  }
  return static_cast<uint32_t>(sum);
}

TEST(CanaryWords, AreMultiplesThatAQueryCanHave) {
  for (const uint32_t bits : {1u, 7u, 26u, 31u, 32u}) {
    const auto words = canary_words(1000, bits);
    ASSERT_EQ(words.size(), 1000u);
    uint32_t all = 0;
    for (const uint32_t word : words) all |= word;
    EXPECT_EQ(all, bits == 32 ? ~0u : ~0u << (32 - bits));
    EXPECT_EQ(canary_words(1000, bits), words) << "the same ones in a process";
  }
}

TEST(ProductWeights, AreOddAndOthersEachTime) {
  const auto weights = product_weights(1000);
  ASSERT_EQ(weights.size(), 1000u);
  uint32_t all = 0, common = ~0u;
  for (const uint32_t weight : weights) {
    all |= weight;
    common &= weight;
  }
  EXPECT_EQ(all, ~0u);
  EXPECT_EQ(common, 1u) << "the lowest bit, and no other that all have";
  EXPECT_NE(product_weights(1000), weights);
}

TEST(CanaryProducts, AreTheSumsOfTheDefinition) {
  SeededRandom random(400);
  for (const size_t rows : {1, 2, 7, 64, 1023, 1024, 1025, 3000}) {
    std::vector<uint32_t> words(rows);
    for (uint32_t& word : words) word = random.u32();
    const auto columns = random.octets(rows * 5);
    std::vector<uint32_t> products(5, 0xaaaaaaaa);
    CanaryProducts(words).multiply(columns, products);
    for (size_t c = 0; c < 5; ++c) {
      EXPECT_EQ(products[c], product(words, columns.data() + c * rows)) << rows << " rows";
    }
  }
}

// Sums are largest where all words and bytes are extreme.
TEST(CanaryProducts, HaveRoomForExtremes) {
  for (const uint32_t word : {0x7fff'7fffu, 0x8000'8000u, 0xffff'ffffu, 0x7fff'8000u}) {
    for (const uint8_t byte : {uint8_t{0x80}, uint8_t{0x7f}, uint8_t{0xff}}) {
      const std::vector<uint32_t> words(5000, word);
      const std::vector<uint8_t> column(5000, byte);
      std::vector<uint32_t> products(1);
      CanaryProducts(words).multiply(column, products);
      EXPECT_EQ(products[0], product(words, column.data())) << word << " " << int{byte};
    }
  }
}

std::vector<uint32_t> products_of(const LoadedDatabase& database) {
  const auto& matrix = support::PlainEngine::in(database);
  std::vector<uint32_t> products;
  for (uint64_t c = 0; c < matrix.column_count(); ++c) {
    std::vector<uint8_t> column;
    for (uint64_t r = 0; r < matrix.row_count(); ++r) {
      column.push_back(static_cast<uint8_t>(matrix.at(r, c)));
    }
    products.push_back(product(database.canary->words, column.data()));
  }
  return products;
}

TEST(CanaryProducts, AreThereOnceADatabaseIsLoaded) {
  const TemporaryFolder folder;
  BuildOptions options;
  options.shard_count = 3;
  Pairs pairs;
  for (int i = 0; i < 90; ++i) pairs.emplace_back("key " + std::to_string(i), std::to_string(i));
  build(pairs, folder / "db", options);
  const DeviceEngineMaker engines;
  const LoadedDatabase old = load_database(folder / "db", engines);
  ASSERT_TRUE(old.canary);
  EXPECT_EQ(old.canary->products, products_of(old));
  EXPECT_FALSE(load(folder / "db").canary) << "nobody checks kernels of the CPU";

  // What is shared with the epoch before is not read, and has its products all the same.
  pairs.front().second = "x";
  build(pairs, folder / "db", options);
  const LoadedDatabase next = load_database(folder / "db", engines, &old);
  EXPECT_GT(next.reused_bytes, 0u);
  EXPECT_EQ(next.canary->products, products_of(next));
  EXPECT_NE(next.canary->products, old.canary->products);

  // Where the epoch before has no products, everything is read.
  const LoadedDatabase plain = load(folder / "db");
  const LoadedDatabase again = load_database(folder / "db", engines, &plain);
  EXPECT_EQ(again.canary->products, products_of(again));
}

}  // namespace
}  // namespace blindfuse::builder_testing
