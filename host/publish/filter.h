// The binary fuse filter of one shard. It determines a row for each key (ChalametPIR, Algorithm 2).
//
// Someone who knows a filter's seed before its keys are fixed can choose keys that share rows, and
// so prevent the filter. Seeds are therefore unpredictable.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "src/arithmetic/fuse_slots.h"

namespace blindfuse {

// Key `key` of the input is the last to be determined at `row`. Records are assigned in the order
// of the steps: D[row] = record(key) - the sum of the key's other rows.
struct FilterStep {
  uint32_t key;
  uint32_t row;
};

struct Filter {
  uint64_t seed = 0;              // the first of those tried whose graph can be peeled
  std::vector<FilterStep> steps;  // one a key, in the order of assignment
};

// The seed of the next try.
using NextSeed = std::function<uint64_t()>;

// slot_hashes: one a key, fewer than 2^32, all different. The result depends only on the arguments
// and the seeds. Throws InputError if two slot hashes are equal (only another salt helps), or if
// none of kFilterTriesMax seeds works: the shape is too small for the keys, or the keys were chosen
// to share rows.
Filter build_filter(const FuseShape& shape, std::span<const uint64_t> slot_hashes,
                    const NextSeed& next_seed);

// Graphs of the published sizes nearly always peel at the first seed. Small ones may take some
// tries.
inline constexpr uint32_t kFilterTriesMax = 1000;

}  // namespace blindfuse
