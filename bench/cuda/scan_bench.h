// The measurements: the kernels by themselves, and through the engine.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/cuda/options.h"
#include "bench/cuda/random_bytes.h"
#include "bench/cuda/report.h"
#include "bench/cuda/yardsticks.h"
#include "host/system/worker_threads.h"

namespace blindfuse::bench {

// The kernels that a scanner of this name may use. "auto" is none in particular.
inline std::vector<std::string> kernels_of(const std::string& kernel) {
  if (kernel == "auto") return {};
  return {kernel};
}

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

// These measurements take the first of the kernels. They throw ResourceError when the device has no
// room for the shape.

// Answers batches of every size, two in flight, and prints the rates. scans: for comparison.
void time_pipelines(const Bench& bench, const Shape& shape, const ScanSeconds& scans);

// Also packs responses under clients' secrets, for those of kPackedBatches that are asked for.
void time_packed_pipelines(const Bench& bench, const Shape& shape, const ScanSeconds& scans);

// Also packs responses, with a second level, which returns the words of one shard.
void time_two_levels(const Bench& bench, const Shape& shape, const ScanSeconds& scans);

// Also packs responses, with one level, for queries that have words for each of options.buckets()
// buckets.
void time_buckets(const Bench& bench, const Shape& shape);

// Makes the hint, and the host's part of it, and prints the time of both.
void time_hint(const Bench& bench, const Shape& shape);

// Makes packing tables and masks, copies them to the host, and prints the time of both.
void time_packs(const Bench& bench, const Shape& shape);

}  // namespace blindfuse::bench
