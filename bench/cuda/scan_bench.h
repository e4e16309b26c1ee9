// Checks and times the kernels by themselves.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bench/cuda/options.h"
#include "bench/cuda/random_bytes.h"
#include "bench/cuda/report.h"
#include "bench/cuda/yardsticks.h"
#include "host/system/worker_threads.h"

namespace blindfuse::bench {

// The data that every part of the benchmark needs.
struct Bench {
  const Options& options;                   // batches in ascending order
  const std::vector<std::string>& kernels;  // at least one
  const RandomBytes& random;
  WorkerThreads& threads;
  Yardsticks& yardsticks;
  Report& report;
};

// Compares every kernel with the CPU, with every batch, and reports the differences. Returns the
// kernels that multiply as the CPU does. The times of others mean nothing. Throws ResourceError if
// the yardstick does not read the whole matrix.
std::vector<std::string> right_kernels(const Bench& bench);

// Seconds of a batch, by the kernel and the size of the batch.
using ScanSeconds = std::map<std::pair<std::string, size_t>, double>;

// Times every kernel with every batch, compares its products with the CPU's once, and prints both.
// Throws ResourceError when the device has no room for the shape.
ScanSeconds time_scans(const Bench& bench, const Shape& shape);

}  // namespace blindfuse::bench
