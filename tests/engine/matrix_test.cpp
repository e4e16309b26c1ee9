#include "host/cpu/scan/matrix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support.h"

namespace blindfuse {
namespace {

using support::SeededRandom;

// All of it, or slabs of 512 columns or more and of 64 MiB or more.
TEST(Matrix, HasWideSlabs) {
  for (const uint64_t rows : {0, 1, 64, 32'768, 1'179'648}) {
    for (const uint64_t columns : {0, 1, 5, 511, 1'023, 1'024, 1'040, 32'768, 1'000'001}) {
      const uint64_t width = Matrix::usual_slab_columns(rows, columns);
      EXPECT_EQ(width % 6, 0u);
      EXPECT_GE(width, std::min<uint64_t>(columns, 512)) << rows << " x " << columns;
      if (width < columns) {
        EXPECT_GE(width * rows, 64u << 20) << rows << " x " << columns;
      }
    }
  }
  EXPECT_EQ(Matrix::usual_slab_columns(1'179'648, 1'040), 522u);
  EXPECT_EQ(Matrix::usual_slab_columns(32'768, 32'768), 2'052u);
}

class SharedMatrix : public testing::Test {
 protected:
  // Slabs of 12, 12 and 7 columns, with a whole block of rows and a part of one.
  static constexpr uint64_t kRows = 3072 + 70, kColumns = 31, kSlab = 12;

  static Matrix filled(const std::vector<uint8_t>& bytes) {
    Matrix matrix(kRows, kColumns, kSlab);
    matrix.set_columns(0, bytes);
    return matrix;
  }
  static std::span<const uint8_t> part(const std::vector<uint8_t>& bytes, uint64_t first,
                                       uint64_t count) {
    return std::span(bytes).subspan(first * kRows, count * kRows);
  }

  SeededRandom random_{401};
  std::vector<uint8_t> old_bytes_ = random_.octets(kRows * kColumns);
  std::vector<uint8_t> new_bytes_ = random_.octets(kRows * kColumns);
  Matrix old_ = filled(old_bytes_);
};

// Whatever the columns that are the same, and whatever comes first.
TEST_F(SharedMatrix, TakesColumnsFromAnother) {
  for (int i = 0; i < 60; ++i) {
    const uint64_t first = random_.below(kColumns + 1);
    const uint64_t last = random_.between(first, kColumns);
    std::vector<uint8_t> expected = new_bytes_;
    std::ranges::copy(part(old_bytes_, first, last - first),
                      expected.begin() + static_cast<long>(first * kRows));
    Matrix matrix(kRows, kColumns, kSlab);
    const bool share_first = random_.below(2) == 0;
    if (share_first) {
      ASSERT_TRUE(matrix.share_columns(first, last - first, old_));
    }
    matrix.set_columns(0, part(new_bytes_, 0, first));
    matrix.set_columns(last, part(new_bytes_, last, kColumns - last));
    if (!share_first) {
      ASSERT_TRUE(matrix.share_columns(first, last - first, old_));
    }
    ASSERT_TRUE(matrix.columns(0, kColumns) == expected) << first << " .. " << last;
    for (uint64_t slab = 0; slab < matrix.slab_count(); ++slab) {
      const bool whole = first <= slab * kSlab && last >= std::min(kColumns, (slab + 1) * kSlab);
      ASSERT_EQ(matrix.slab(slab).data() == old_.slab(slab).data(), whole) << slab;
    }
  }
  EXPECT_TRUE(old_.columns(0, kColumns) == old_bytes_) << "copied, never written";
}

TEST_F(SharedMatrix, SetsInMemoryOfItsOwn) {
  Matrix matrix(kRows, kColumns, kSlab);
  ASSERT_TRUE(matrix.share_columns(0, kColumns, old_));
  matrix.set_columns(3, part(new_bytes_, 3, 1));
  EXPECT_TRUE(old_.columns(0, kColumns) == old_bytes_);
  std::vector<uint8_t> expected = old_bytes_;
  std::ranges::copy(part(new_bytes_, 3, 1), expected.begin() + 3 * kRows);
  EXPECT_TRUE(matrix.columns(0, kColumns) == expected);
}

// What is copied counts as what is set does.
TEST_F(SharedMatrix, TellsWhatItWillTake) {
  const uint64_t padded =
      (kRows + Matrix::kGroupRows - 1) / Matrix::kGroupRows * Matrix::kGroupRows;
  const Matrix matrix(kRows, kColumns, kSlab);
  EXPECT_EQ(matrix.bytes_to_take({}, nullptr), padded * kColumns);
  EXPECT_EQ(matrix.bytes_to_take({}, &old_), padded * kColumns);
  const auto taken = [&](std::vector<ColumnRange> shared) {
    return matrix.bytes_to_take(shared, &old_);
  };
  EXPECT_EQ(taken({{0, kColumns}}), 0u);
  EXPECT_EQ(taken({{0, kColumns - 1}}), padded * (kColumns - (kColumns - 1) / kSlab * kSlab));
  EXPECT_EQ(taken({{0, kSlab}}), padded * (kColumns - kSlab));
  EXPECT_EQ(taken({{1, kSlab}}), padded * kColumns) << "no slab is whole";
  EXPECT_EQ(taken({{0, kSlab - 1}, {kSlab, kSlab}}), padded * (kColumns - kSlab));
  EXPECT_EQ(taken({{1, 2 * kSlab}}), padded * (kColumns - kSlab));
  const Matrix otherwise(kRows, kColumns, kSlab + 6);
  const std::vector<ColumnRange> all = {{0, kColumns}};
  EXPECT_EQ(matrix.bytes_to_take(all, &otherwise), padded * kColumns);
}

TEST_F(SharedMatrix, IsZeroWhereNothingWasSet) {
  Matrix matrix(kRows, kColumns, kSlab);
  ASSERT_TRUE(matrix.share_columns(5, 1, old_));
  matrix.take_memory();
  std::vector<uint8_t> expected(kRows * kColumns);
  std::ranges::copy(part(old_bytes_, 5, 1), expected.begin() + 5 * kRows);
  EXPECT_TRUE(matrix.columns(0, kColumns) == expected);
}

TEST(Matrix, SaysHowMuchMemoryItLacks) {
  try {
    Matrix(uint64_t{1} << 31, uint64_t{1} << 20).take_memory();
    FAIL() << "this machine has two petabytes";
  } catch (const ResourceError& error) {
    EXPECT_NE(std::string(error.what()).find("2251799813685248 bytes"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace blindfuse
