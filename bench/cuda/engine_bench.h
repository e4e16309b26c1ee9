// Times the kernels through the engine: answers to a server's queries, and the hint.
#pragma once

#include "bench/cuda/options.h"
#include "bench/cuda/scan_bench.h"

namespace blindfuse::bench {

// All with the first of the kernels. Throw ResourceError when the device has no room for the
// shape.

// Answers batches of every size, two in flight, and prints the rates. scans: for comparison.
void time_pipelines(const Bench& bench, const Shape& shape, const ScanSeconds& scans);

// The same with responses that are packed under clients' secrets, for those of kPackedBatches that
// are asked for.
void time_packed_pipelines(const Bench& bench, const Shape& shape, const ScanSeconds& scans);

// The same with a second level, which returns the words of one shard.
void time_two_levels(const Bench& bench, const Shape& shape, const ScanSeconds& scans);

// The same with one level, for queries that have words for each of options.buckets() buckets.
void time_buckets(const Bench& bench, const Shape& shape);

// Makes the hint, and the host's part of it, and prints the time of both.
void time_hint(const Bench& bench, const Shape& shape);

// Makes packing tables and masks, copies them to the host, and prints the time of both.
void time_packs(const Bench& bench, const Shape& shape);

}  // namespace blindfuse::bench
