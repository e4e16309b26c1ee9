// The rates at which one core of this machine answers queries, by the CPU's engine.
#pragma once

namespace blindfuse {

// The rates of one thread. A multiply-add of the product is a query's word times a byte of the
// matrix. One of packing is a digit of a packing table times a number of a query's key; a table has
// kTableWords.
struct CoreRates {
  double scan_alone_bytes_per_second = 0;          // of the matrix, for a query alone
  double scan_batch_multiply_adds_per_second = 0;  // for a full batch
  double pack_alone_bytes_per_second = 0;          // of the packing tables, for a query alone
  double pack_batch_multiply_adds_per_second = 0;  // for a full batch
  double memory_bytes_per_second = 0;              // reads alone
  // The steps of a query's second level: a key switch, the entries of a column in 2048 rows, and
  // the polynomials of a pack under all automorphisms. With a short key of order m the last is this
  // many times m log2(m).
  double second_switch_seconds = 0;
  double second_column_seconds = 0;
  double second_traces_seconds = 0;
  double second_short_trace_seconds = 0;
};

// Runs the engine's kernels on made-up data for about a second, on the calling thread. All rates
// are positive. Takes 0.3 GB. Throws ResourceError if memory is short.
CoreRates measure_core_rates();

}  // namespace blindfuse
