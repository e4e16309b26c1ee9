// Register tiles of queries x columns, shared by the instruction sets that multiply whole 32-bit
// words.
//
// Included only by the kernel files, each compiled for its own instruction set. Vector is a type of
// that file's unnamed namespace, so that every instantiation is the file's own: otherwise the
// linker could keep one compiled for a processor that is not there. For the same reason nothing of
// the standard library is called here.
//
// A tile of Q queries and C columns loads Q + C vectors for Q * C multiply-adds; 4 x 4 balances
// loads with the multiplier.
#pragma once

#include "host/cpu/multiply_kernel.h"

namespace blindfuse {

template <typename Vector, size_t kQueries, size_t kColumns>
inline void multiply_tile(const KernelTask& task, size_t b, size_t c) {
  const uint32_t* queries[kQueries];
  const int8_t* columns[kColumns];
  for (size_t i = 0; i < kQueries; ++i) queries[i] = task.queries + (b + i) * task.query_stride;
  for (size_t j = 0; j < kColumns; ++j) columns[j] = task.columns + (c + j) * task.column_stride;
  Vector sums[kQueries][kColumns];
  size_t r = 0;
  for (; r + Vector::kLanes <= task.rows; r += Vector::kLanes) {
    Vector words[kQueries];
    for (size_t i = 0; i < kQueries; ++i) words[i] = Vector::load_words(queries[i] + r);
    for (size_t j = 0; j < kColumns; ++j) {
      const Vector bytes = Vector::load_bytes(columns[j] + r);
      for (size_t i = 0; i < kQueries; ++i) sums[i][j].add_product(words[i], bytes);
    }
  }
  for (size_t i = 0; i < kQueries; ++i) {
    for (size_t j = 0; j < kColumns; ++j) {
      uint32_t sum = sums[i][j].sum();
      for (size_t t = r; t < task.rows; ++t) {
        sum += queries[i][t] * static_cast<uint32_t>(static_cast<int32_t>(columns[j][t]));
      }
      task.products[(b + i) * task.product_stride + c + j] += sum;
    }
  }
}

template <typename Vector, size_t kQueries>
inline void multiply_query_group(const KernelTask& task, size_t b, size_t c, size_t columns) {
  static_assert(Vector::kTileColumns <= 4);
  if constexpr (Vector::kTileColumns >= 4) {
    if (columns == 4) return multiply_tile<Vector, kQueries, 4>(task, b, c);
    if (columns == 3) return multiply_tile<Vector, kQueries, 3>(task, b, c);
  }
  if (columns == 2) return multiply_tile<Vector, kQueries, 2>(task, b, c);
  multiply_tile<Vector, kQueries, 1>(task, b, c);
}

template <typename Vector>
inline void multiply_tiles(const KernelTask& task) {
  for (size_t c = 0; c < task.column_count; c += Vector::kTileColumns) {
    const size_t left = task.column_count - c;
    const size_t columns = left < Vector::kTileColumns ? left : Vector::kTileColumns;
    size_t b = 0;
    for (; b + 4 <= task.query_count; b += 4) {
      multiply_query_group<Vector, 4>(task, b, c, columns);
    }
    switch (task.query_count - b) {
      case 3:
        multiply_query_group<Vector, 3>(task, b, c, columns);
        break;
      case 2:
        multiply_query_group<Vector, 2>(task, b, c, columns);
        break;
      case 1:
        multiply_query_group<Vector, 1>(task, b, c, columns);
        break;
      default:
        break;
    }
  }
}

}  // namespace blindfuse
