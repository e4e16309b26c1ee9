#include "cuda/scan/trial_memory.h"

#include <algorithm>

#include "cuda/scan/device_matrix.h"
#include "cuda/scan/kernels/scan_args.h"

namespace blindfuse {
namespace {

// The bytes of the limbs of queries of this many rows, and of their products.
uint64_t limb_bytes(uint64_t row_count, uint32_t query_count) {
  return limb_rows_for(query_count) * DeviceMatrix::pitch_of(row_count);
}
uint64_t product_bytes(uint64_t column_count, uint32_t query_count) {
  return sizeof(uint32_t) * query_count * column_count;
}

}  // namespace

uint32_t trial_queries(size_t batch_max) {
  // The most queries are those of two of the largest tiles.
  constexpr uint32_t kMost = 2 * kWgmmaTileQueries.back();
  return static_cast<uint32_t>(std::min<size_t>(batch_max, kMost));
}

uint64_t trial_bytes(uint64_t row_count, uint64_t column_count, size_t batch_max) {
  const uint32_t queries = trial_queries(batch_max);
  // The canary's words and four multiples of them at a time; its product.
  return sizeof(uint32_t) * (row_count + kQueriesInFour * row_count + column_count) +
         limb_bytes(row_count, queries) + product_bytes(column_count, queries);
}

uint64_t timing_bytes(uint64_t row_count, uint64_t column_count, uint64_t matrix_bytes_min) {
  if (DeviceMatrix::pitch_of(row_count) * column_count < matrix_bytes_min) return 0;
  return limb_bytes(row_count, kTimingQueriesMax) + product_bytes(column_count, kTimingQueriesMax);
}

}  // namespace blindfuse
