// The operands and the products of an engine's multiplication.
#pragma once

#include <cstddef>
#include <cstdint>

namespace blindfuse {

// Rows first .. last-1 of the matrix.
struct RowRange {
  uint64_t first = 0;
  uint64_t last = 0;

  uint64_t size() const { return last - first; }
};

// Columns first .. first + count - 1 of the matrix.
struct ColumnRange {
  uint64_t first = 0;
  uint64_t count = 0;
};

// `count` row vectors, with one word for each row of the range with which they are multiplied. The
// words come in panels of 64 rows: the word of row r of vector b is words[b * stride + r / 64 *
// panel_stride + r % 64]. So a plain vector has the default strides, and the public matrix,
// expanded in panels, is a batch of n vectors without being moved.
struct QueryBatch {
  const uint32_t* words = nullptr;
  size_t count = 0;
  size_t stride = 0;
  size_t panel_stride = 64;
};

// `count` products. Product b is the words at words + b * stride, one for each column of the range
// with which the queries are multiplied.
struct ProductBatch {
  uint32_t* words = nullptr;
  size_t count = 0;
  size_t stride = 0;
};

}  // namespace blindfuse
