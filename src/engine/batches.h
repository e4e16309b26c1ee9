// What an engine multiplies its matrix with, and what comes out.
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

// `count` row vectors, one word a row of the range they are multiplied with. The words come in
// panels of 64 rows: that of row r of vector b is words[b * stride + r / 64 * panel_stride + r %
// 64]. So a plain vector has the default, and the public matrix, expanded in panels, is n vectors
// as it stands.
struct QueryBatch {
  const uint32_t* words = nullptr;
  size_t count = 0;
  size_t stride = 0;
  size_t panel_stride = 64;
};

// `count` products; product b is the words at words + b * stride, one a column of the matrix.
struct ProductBatch {
  uint32_t* words = nullptr;
  size_t count = 0;
  size_t stride = 0;
};

}  // namespace blindfuse
