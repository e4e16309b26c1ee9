// The binary fuse filter of one shard: which key determines which row (ChalametPIR, Algorithm 2).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/fuse_slots.h"

namespace blindfuse {

// Key `key` of the input is the last to be determined at `row`: when records are assigned in the
// order of steps, D[row] = record(key) - the sum of the key's other rows.
struct FilterStep {
  uint32_t key;
  uint32_t row;
};

struct Filter {
  uint64_t seed = 0;              // the first of 0, 1, 2, ... whose graph can be peeled
  std::vector<FilterStep> steps;  // one a key, in the order of assignment
};

// slot_hashes: one a key, fewer than 2^32, all different. The result depends on nothing but the
// arguments. Throws BadInput when two slot hashes are equal (only another salt helps), or when no
// seed of many works because the shape is too small for the keys.
Filter build_filter(const FuseShape& shape, std::span<const uint64_t> slot_hashes);

}  // namespace blindfuse
