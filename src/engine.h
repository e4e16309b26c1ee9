// The one operation of the project: a batch of u32 row vectors times the byte matrix, modulo 2^32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace blindfuse {

// Rows first .. last-1 of the matrix.
struct RowRange {
  uint64_t first = 0;
  uint64_t last = 0;

  uint64_t size() const { return last - first; }
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

// An engine holds one matrix, in whatever layout and memory suits it.
class Engine {
 public:
  virtual ~Engine() = default;

  // Names the engine and the kernel it chose, as --engine takes it: "cpu:avx512".
  virtual std::string_view name() const = 0;

  // products[b][c] += sum over r in rows of queries[b][r - rows.first] * int8(matrix[r][c]), modulo
  // 2^32.
  //
  // Adding, over a range of rows, lets the hint be made panel by panel and a matrix be split by
  // rows over machines. queries.count == products.count; any alignment; rows within the matrix. One
  // caller at a time. Throws EngineTrouble when the machine fails; products are then worthless.
  virtual void multiply(QueryBatch queries, RowRange rows, ProductBatch products) = 0;
};

}  // namespace blindfuse
