#include "host/matrix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support.h"

namespace blindfuse {
namespace {

using support::SeededRandom;

TEST(Matrix, GivesBackTheColumnsThatWereSet) {
  SeededRandom random(400);
  for (const uint64_t rows : {1, 63, 64, 65, 3071, 3072, 3073, 6200}) {
    for (const uint64_t columns : {1, 5, 6, 7, 13}) {
      Matrix matrix(rows, columns);
      const std::vector<uint8_t> bytes = random.octets(rows * columns);
      const uint64_t first = random.below(columns);
      matrix.set_columns(first, std::span(bytes).subspan(first * rows));
      matrix.set_columns(0, std::span(bytes).first(first * rows));
      ASSERT_EQ(matrix.columns(0, columns), bytes) << rows << " x " << columns;
      ASSERT_EQ(matrix.columns(first, 1),
                std::vector<uint8_t>(bytes.begin() + static_cast<long>(first * rows),
                                     bytes.begin() + static_cast<long>((first + 1) * rows)));
      for (int i = 0; i < 20; ++i) {
        const uint64_t r = random.below(rows), c = random.below(columns);
        ASSERT_EQ(matrix.at(r, c), static_cast<int8_t>(bytes[c * rows + r]));
      }
    }
  }
}

// Worked out by hand from the description: blocks of 3072 rows, tiles of 6 columns, groups of 64
// rows.
TEST(Matrix, LiesInMemoryAsItSays) {
  constexpr uint64_t kRows = 3072 + 64, kColumns = 8;
  Matrix matrix(kRows, kColumns);
  const auto offset_of = [&](uint64_t row, uint64_t column) {
    std::vector<uint8_t> bytes(kRows);
    bytes[row] = 1;
    matrix.set_columns(column, bytes);
    const auto all = matrix.bytes();
    const auto at = std::ranges::find(all, int8_t{1}) - all.begin();
    matrix.set_columns(column, std::vector<uint8_t>(kRows));
    return at;
  };
  EXPECT_EQ(matrix.bytes().size(), kRows * kColumns);
  EXPECT_EQ(offset_of(0, 0), 0);
  EXPECT_EQ(offset_of(63, 0), 63);
  EXPECT_EQ(offset_of(5, 1), 64 + 5);
  EXPECT_EQ(offset_of(64, 0), 6 * 64);
  EXPECT_EQ(offset_of(64, 5), 6 * 64 + 5 * 64);
  EXPECT_EQ(offset_of(0, 6), 6 * 3072);  // the second tile, of two columns
  EXPECT_EQ(offset_of(65, 7), 6 * 3072 + 2 * 64 + 64 + 1);
  EXPECT_EQ(offset_of(3072, 0), 8 * 3072);  // the second block, of 64 rows
  EXPECT_EQ(offset_of(3073, 7), 8 * 3072 + 6 * 64 + 64 + 1);
}

TEST(Matrix, SaysHowMuchMemoryItLacks) {
  try {
    Matrix(uint64_t{1} << 31, uint64_t{1} << 20);
    FAIL() << "this machine has two petabytes";
  } catch (const EngineTrouble& error) {
    EXPECT_NE(std::string(error.what()).find("2251799813685248 bytes"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace blindfuse
