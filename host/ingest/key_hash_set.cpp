#include "host/ingest/key_hash_set.h"

#include <algorithm>
#include <bit>

#include "src/base/errors.h"

namespace blindfuse {
namespace {

constexpr uint32_t kFree = UINT32_MAX;
constexpr size_t kSlotsMin = 64;

}  // namespace

KeyHashSet::KeyHashSet() : slots_(kSlotsMin, kFree) {}

KeyHashSet::Place KeyHashSet::insert(const KeyHash& hash) {
  size_t slot = home_of(hash);
  for (; slots_[slot] != kFree; slot = (slot + 1) & (slots_.size() - 1)) {
    if (hashes_[slots_[slot]] == hash) return {slots_[slot], false};
  }
  const uint32_t number = size();
  invariant(number != kFree, "keys are numbered with 32 bits");
  slots_[slot] = number;
  hashes_.push_back(hash);
  if (2 * hashes_.size() > slots_.size()) grow();
  return {number, true};
}

void KeyHashSet::clear() {
  hashes_.clear();
  std::ranges::fill(slots_, kFree);
}

// The slot hashes of an index database are numbers with a common stride: the multiplication spreads
// those over the upper bits.
size_t KeyHashSet::home_of(const KeyHash& hash) const {
  const int bits = std::countr_zero(slots_.size());
  return static_cast<size_t>(hash.slot_hash * 0x9e3779b97f4a7c15ULL >> (64 - bits));
}

void KeyHashSet::grow() {
  slots_.assign(2 * slots_.size(), kFree);
  for (uint32_t number = 0; number < size(); ++number) {
    size_t slot = home_of(hashes_[number]);
    while (slots_[slot] != kFree) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = number;
  }
}

}  // namespace blindfuse
