#include "host/build/shard_range.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "src/errors.h"

namespace blindfuse {
namespace {

// Entries are large; slot hashes with places are what is sorted, and next to always are all
// different.
void sort_by_slot_hash(std::vector<SpoolEntry>& entries) {
  std::vector<std::pair<uint64_t, uint32_t>> order(entries.size());
  for (uint32_t i = 0; i < entries.size(); ++i) order[i] = {entries[i].hash.slot_hash, i};
  std::ranges::sort(order, [&](const auto& a, const auto& b) {
    if (a.first != b.first) return a.first < b.first;
    return entries[a.second].hash.digest < entries[b.second].hash.digest;
  });
  std::vector<SpoolEntry> sorted;
  sorted.reserve(entries.size());
  for (const auto& [slot_hash, i] : order) sorted.push_back(entries[i]);
  entries = std::move(sorted);
}

uint32_t partition_of(uint64_t shard_hash) { return shard_of(shard_hash, Spool::kPartitions); }

}  // namespace

uint64_t lowest_shard_hash(uint32_t shard, uint32_t shard_count) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>(((Wide{shard} << 64) + shard_count - 1) / shard_count);
}

void resolve_duplicates(std::vector<SpoolEntry>& entries, DuplicatePolicy policy) {
  std::ranges::sort(entries, {}, [](const SpoolEntry& entry) {
    return std::tie(entry.hash, entry.source, entry.place);
  });
  const auto same_key = [](const SpoolEntry& a, const SpoolEntry& b) { return a.hash == b.hash; };
  if (policy == DuplicatePolicy::kFirst) {
    entries.erase(std::unique(entries.begin(), entries.end(), same_key), entries.end());
  } else if (policy == DuplicatePolicy::kLast) {
    const auto last = std::unique(entries.rbegin(), entries.rend(), same_key);
    entries.erase(entries.begin(), last.base());
  }
}

ShardRange::ShardRange(const Spool& spool, uint32_t shard_count, uint32_t first, uint32_t last,
                       DuplicatePolicy policy)
    : first_(first), shards_(last - first) {
  invariant(first < last && last <= shard_count, "shards of the database");
  const uint64_t low = lowest_shard_hash(first, shard_count);
  const uint64_t high = last == shard_count ? UINT64_MAX : lowest_shard_hash(last, shard_count) - 1;
  part_ = spool.load(partition_of(low), partition_of(high));
  if (policy != DuplicatePolicy::kError) resolve_duplicates(part_.entries, policy);
  const size_t about = part_.entries.size() / shards_.size();
  for (std::vector<SpoolEntry>& entries : shards_) entries.reserve(about + about / 16);
  for (const SpoolEntry& entry : part_.entries) {
    const uint32_t shard = shard_of(entry.hash.shard_hash, shard_count);
    if (shard >= first && shard < last) shards_[shard - first].push_back(entry);
  }
  part_.entries = {};
  for (std::vector<SpoolEntry>& entries : shards_) sort_by_slot_hash(entries);
}

}  // namespace blindfuse
