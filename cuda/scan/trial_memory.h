// The device memory, in addition to the matrix, that the kernels' checks and measurements take
// before an engine serves. They release it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/scan/calibrations.h"
#include "cuda/scan/scan_kernels.h"

namespace blindfuse {

// The largest number of queries with which kernels are timed.
constexpr uint32_t kTimingQueriesMax = kTimedBatches.back();

// Queries of the largest batch that Scanner::check_kernels() multiplies the matrix with.
uint32_t trial_queries(size_t batch_max);

// Bytes that Scanner::check_kernels() takes: the canary's query and product, multiples of the
// query, their limbs and their products. Never more than two batches of batch_max queries take.
uint64_t trial_bytes(uint64_t row_count, uint64_t column_count, size_t batch_max);

// Bytes that Scanner::calibrate() takes, for limbs and products; 0 for a matrix of less than
// matrix_bytes_min (Calibrations::bytes_min()).
uint64_t timing_bytes(uint64_t row_count, uint64_t column_count, uint64_t matrix_bytes_min);

}  // namespace blindfuse
