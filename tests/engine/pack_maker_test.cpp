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
constexpr uint64_t kPackColumns = support::kIsEmulated ? 3 : kDimension + 1000;
constexpr uint64_t kPackRows = 3 * kDimension;

class PackMakerTest : public testing::TestWithParam<std::string> {};

// The CPU's makers are one. Of an emulator's, one for each order of limbs.
std::vector<std::string> making_engine_names() {
  std::vector<std::string> names = support::device_engine_names();
  names.push_back("cpu");
  if (support::kIsEmulated) {
    std::erase_if(
        names, [](const std::string& name) { return name == "cuda:dp4a" || name == "cuda:mma"; });
  }
  return names;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PackMakerTest);
INSTANTIATE_TEST_SUITE_P(Engines, PackMakerTest, testing::ValuesIn(making_engine_names()),
                         support::name_of_test);

// Coefficient i of column c's hint polynomial at c * 2048 + i, for whole packs: the product of the
// public polynomials, written out as rows, by the CPU.
std::vector<uint32_t> hints_of(std::span<const uint32_t> blocks, std::span<const uint8_t> columns) {
  std::vector<uint32_t> rows(kDimension * kPackRows);
  for (uint64_t i = 0; i < kDimension; ++i) {
    for (uint64_t row = 0; row < kPackRows; ++row) {
      const uint64_t place = i + row % kDimension;
      const uint32_t word = blocks[row / kDimension * kDimension + place % kDimension];
      rows[i * kPackRows + row] = place < kDimension ? word : 0 - word;
    }
  }
  const auto engine = make_engine("cpu", kPackRows, kPackColumns, 0);
  engine->set_columns(0, columns);
  engine->seal();
  std::vector<uint32_t> products(kDimension * kPackColumns);
  engine->multiply({rows.data(), kDimension, kPackRows}, {0, kPackRows},
                   {products.data(), kDimension, kPackColumns});
  std::vector<uint32_t> hints((kPackColumns + kDimension - 1) / kDimension * kDimension *
                              kDimension);
  for (uint64_t i = 0; i < kDimension; ++i) {
    for (uint64_t c = 0; c < kPackColumns; ++c)
      hints[c * kDimension + i] = products[i * kPackColumns + c];
  }
  return hints;
}

// The last pieces first.
void set_in_pieces(PackMaker& maker, std::span<const uint8_t> columns, SeededRandom& random) {
  for (uint64_t last = kPackColumns; last > 0;) {
    const uint64_t count = std::min<uint64_t>(last, random.between(1, kPackColumns / 2));
    last -= count;
    maker.set_columns(last, columns.subspan(last * kPackRows, count * kPackRows));
  }
}

TEST_P(PackMakerTest, MakesWhatTheDenseProductMakes) {
  SeededRandom random(123);
  const std::vector<uint32_t> blocks = random.words(kPackRows);
  std::vector<uint32_t> key_masks(ring::kKeyWords);
  for (uint32_t& value : key_masks) {
    value = static_cast<uint32_t>(random.below(ring::kPackingModulus));
  }
  const std::vector<uint8_t> columns = random.octets(kPackRows * kPackColumns);
  const auto engines = make_engine_maker(GetParam(), 2);
  EXPECT_GE(engines->packs_at_once(kPackRows, 1), 1u);
  EXPECT_LE(engines->packs_at_once(1, 1000), kPacksAtOnceMax);
  const auto maker = engines->make_pack_maker(blocks, key_masks, kPackColumns);
  set_in_pieces(*maker, columns, random);
  maker->seal();
  const std::vector<uint32_t> hints = hints_of(blocks, columns);
  const PackingTableBuilder builder(key_masks);
  std::vector<uint32_t> table(kTableWords), expected_table(kTableWords);
  std::array<uint32_t, kDimension> mask{}, expected_mask{};
  for (uint32_t pack = 0; pack * kDimension < kPackColumns; ++pack) {
    builder.build(std::span(hints).subspan(pack * kDimension * kDimension, kDimension * kDimension),
                  MutablePackingTable(expected_table), expected_mask);
    maker->make(pack, MutablePackingTable(table), mask);
    EXPECT_TRUE(table == expected_table) << "pack " << pack;
    EXPECT_EQ(mask, expected_mask) << "pack " << pack;
  }
}

}  // namespace
}  // namespace blindfuse
