#include "host/publish/filter.h"

#include <algorithm>
#include <string>

#include "src/base/errors.h"

namespace blindfuse {
namespace {

// The rest of the graph at one row: how many keys meet there, and the xor of their numbers, which
// is the key itself once only one is left.
struct RowState {
  uint32_t key_count = 0;
  uint32_t keys_xor = 0;
};

class Peeling {
 public:
  Peeling(const FuseShape& shape, std::span<const uint64_t> slot_hashes)
      : shape_(shape), slot_hashes_(slot_hashes), rows_(shape.row_count) {}

  // Repeatedly takes away a key that is alone at one of its rows; true when no key is left.
  bool peel(uint64_t seed) {
    std::ranges::fill(rows_, RowState{});
    steps_.clear();
    steps_.reserve(slot_hashes_.size());
    seed_ = seed;
    for (uint32_t key = 0; key < slot_hashes_.size(); ++key) add(key);
    for (uint32_t row = 0; row < shape_.row_count; ++row) take_from(row);
    return steps_.size() == slot_hashes_.size();
  }

  // The keys taken last share slots with no later key, so they are assigned first.
  std::vector<FilterStep> take_steps() {
    std::ranges::reverse(steps_);
    return std::move(steps_);
  }

 private:
  void add(uint32_t key) {
    const auto rows = fuse_rows(shape_, seed_, slot_hashes_[key]);
    for (uint32_t i = 0; i < shape_.arity; ++i) {
      ++rows_[rows[i]].key_count;
      rows_[rows[i]].keys_xor ^= key;
    }
  }

  // Follows the chain of rows that become free, so that the states it touches are still in cache.
  void take_from(uint32_t first) {
    pending_.assign(1, first);
    while (!pending_.empty()) {
      const uint32_t row = pending_.back();
      pending_.pop_back();
      if (rows_[row].key_count != 1) continue;
      const uint32_t key = rows_[row].keys_xor;
      steps_.push_back({key, row});
      const auto rows = fuse_rows(shape_, seed_, slot_hashes_[key]);
      for (uint32_t i = 0; i < shape_.arity; ++i) {
        RowState& state = rows_[rows[i]];
        --state.key_count;
        state.keys_xor ^= key;
        if (state.key_count == 1) pending_.push_back(rows[i]);
      }
    }
  }

  const FuseShape shape_;
  const std::span<const uint64_t> slot_hashes_;
  uint64_t seed_ = 0;
  std::vector<RowState> rows_;
  std::vector<FilterStep> steps_;
  std::vector<uint32_t> pending_;
};

void refuse_equal(std::span<const uint64_t> slot_hashes) {
  std::vector<uint64_t> sorted(slot_hashes.begin(), slot_hashes.end());
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end()) {
    throw InputError(
        "two different keys of one shard have the same slot hash under this salt: a rare chance, "
        "or keys that were chosen for it; build again with --fresh, which picks a new salt");
  }
}

}  // namespace

Filter build_filter(const FuseShape& shape, std::span<const uint64_t> slot_hashes,
                    const NextSeed& next_seed) {
  invariant(slot_hashes.size() < UINT32_MAX, "a shard's keys are numbered with 32 bits");
  Peeling peeling(shape, slot_hashes);
  for (uint32_t tries = 0; tries < kFilterTriesMax; ++tries) {
    const uint64_t seed = next_seed();
    if (peeling.peel(seed)) return {seed, peeling.take_steps()};
    // Equal hashes are so rare that they are looked for only after a failure.
    if (tries == 0) refuse_equal(slot_hashes);
  }
  throw InputError(
      "no filter of " + std::to_string(shape.row_count) + " rows could be made for the " +
      std::to_string(slot_hashes.size()) + " keys of a shard with " +
      std::to_string(kFilterTriesMax) +
      " random seeds: the shard is too full, so allow more with --shards, or its keys "
      "were chosen to collide under this salt, so build with --fresh, which picks a new "
      "one, and limit who may add keys");
}

}  // namespace blindfuse
