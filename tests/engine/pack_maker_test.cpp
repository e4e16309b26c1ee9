// Pack makers of every kind: the same tables and masks as are made of the same columns by the dense
// product, word for word, however the columns come.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "host/cpu/packing/packing_table_builder.h"
#include "host/engines/engine_factory.h"
#include "tests/engine/engines_under_test.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using ring::kDimension;
using support::SeededRandom;

// An emulator takes long for products, and for chains of switches.
constexpr uint64_t kColumnsOfPacks = support::kIsEmulated ? 3 : kPackColumns + 500;
constexpr uint64_t kPackRows = 3 * kDimension;

class PackMakerTest : public testing::TestWithParam<std::string> {};

// The CPU's makers are one, which is tested with all of its columns. Of an emulator's, one for each
// order of limbs.
std::vector<std::string> making_engine_names() {
  std::vector<std::string> names = support::device_engine_names();
  if (!support::kIsEmulated) {
    names.push_back("cpu");
  } else {
    std::erase_if(
        names, [](const std::string& name) { return name == "cuda:dp4a" || name == "cuda:mma"; });
  }
  return names;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PackMakerTest);
INSTANTIATE_TEST_SUITE_P(Engines, PackMakerTest, testing::ValuesIn(making_engine_names()),
                         support::name_of_test);

struct Piece {
  uint64_t first;
  uint64_t count;
};

// In what pieces columns are set, the last first. Devices get all columns; on a processor the dense
// product takes long, so that it gets some from both packs, and the others stay zero.
std::vector<Piece> pieces_for(const std::string& name, SeededRandom& random) {
  if (name == "cpu") return {{kColumnsOfPacks - 1, 1}, {kPackColumns - 3, 5}, {2, 4}, {0, 2}};
  std::vector<Piece> pieces;
  for (uint64_t last = kColumnsOfPacks; last > 0; last = pieces.back().first) {
    const uint64_t count = std::min<uint64_t>(last, random.between(1, kColumnsOfPacks / 2));
    pieces.push_back({last - count, count});
  }
  return pieces;
}

// The public polynomials, written out as rows: with them as queries, products are the coefficients
// of hint polynomials.
std::vector<uint32_t> public_rows(std::span<const uint32_t> blocks) {
  std::vector<uint32_t> rows(kDimension * kPackRows);
  for (uint64_t i = 0; i < kDimension; ++i) {
    for (uint64_t row = 0; row < kPackRows; ++row) {
      const uint64_t place = i + row % kDimension;
      const uint32_t word = blocks[row / kDimension * kDimension + place % kDimension];
      rows[i * kPackRows + row] = place < kDimension ? word : 0 - word;
    }
  }
  return rows;
}

// Puts coefficient i of column c's hint polynomial at c * 2048 + i: the product, by the CPU.
void add_hints(std::span<const uint32_t> rows, const Piece& piece, std::span<const uint8_t> columns,
               std::span<uint32_t> hints) {
  const auto engine = make_engine("cpu", kPackRows, piece.count, 0);
  engine->set_columns(0, columns);
  engine->seal();
  std::vector<uint32_t> products(kDimension * piece.count);
  engine->multiply({rows.data(), kDimension, kPackRows}, {0, kPackRows},
                   {products.data(), kDimension, piece.count});
  for (uint64_t i = 0; i < kDimension; ++i) {
    for (uint64_t c = 0; c < piece.count; ++c) {
      hints[(piece.first + c) * kDimension + i] = products[i * piece.count + c];
    }
  }
}

// With the columns of each piece in the next bucket.
void expect_dense_product(const std::string& name, size_t bucket_count) {
  SeededRandom random(123);
  const std::vector<uint32_t> blocks = random.words(bucket_count * kPackRows);
  std::vector<uint32_t> key_masks(ring::kKeyWords);
  for (uint32_t& value : key_masks) {
    value = static_cast<uint32_t>(random.below(ring::kPackingModulus));
  }
  const auto engines = make_engine_maker(name, 2);
  EXPECT_GE(engines->packs_at_once(kPackRows, 1), 1u);
  EXPECT_LE(engines->packs_at_once(1, 1000), kPacksAtOnceMax);
  const auto maker = engines->make_pack_maker(blocks, key_masks, kPackRows, kColumnsOfPacks);
  std::vector<std::vector<uint32_t>> rows;  // of each bucket
  for (size_t i = 0; i < bucket_count; ++i) {
    rows.push_back(public_rows(std::span(blocks).subspan(i * kPackRows, kPackRows)));
  }
  constexpr size_t kPackWords = kPackColumns * kDimension;
  std::vector<uint32_t> hints((kColumnsOfPacks + kPackColumns - 1) / kPackColumns * kPackWords);
  size_t bucket = 0;
  for (const Piece& piece : pieces_for(name, random)) {
    const std::vector<uint8_t> columns = random.octets(kPackRows * piece.count);
    maker->set_columns(piece.first, columns, bucket);
    add_hints(rows[bucket], piece, columns, hints);
    bucket = (bucket + 1) % bucket_count;
  }
  maker->seal();
  const PackingTableBuilder builder(key_masks);
  std::vector<uint32_t> table(kTableWords), expected_table(kTableWords);
  std::array<uint32_t, kDimension> mask{}, expected_mask{};
  for (uint32_t pack = 0; pack * kPackColumns < kColumnsOfPacks; ++pack) {
    builder.build(std::span(hints).subspan(pack * kPackWords, kPackWords),
                  MutablePackingTable(expected_table), expected_mask);
    maker->make(pack, MutablePackingTable(table), mask);
    EXPECT_TRUE(table == expected_table) << "pack " << pack;
    EXPECT_EQ(mask, expected_mask) << "pack " << pack;
  }
}

TEST_P(PackMakerTest, MakesWhatTheDenseProductMakes) { expect_dense_product(GetParam(), 1); }

TEST_P(PackMakerTest, TakesThePublicPolynomialsOfEachColumnsBucket) {
  expect_dense_product(GetParam(), 2);
}

}  // namespace
}  // namespace blindfuse
