#include "host/publish/shard_range.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "src/base/errors.h"
#include "src/base/release_memory.h"

namespace blindfuse {
namespace {

// An entry's place in its part. Entries are large, so that these are sorted instead.
struct Place {
  uint64_t slot_hash;
  uint32_t entry;
};

// Slot hashes are spread evenly, and so are the row numbers of an index database: a bucket for
// every few of them leaves little to sort within each. Returns where each bucket begins.
std::vector<size_t> spread_over_buckets(std::vector<Place>& places) {
  constexpr size_t kBucketSize = 4;
  const auto [least, most] = std::ranges::minmax(places, {}, &Place::slot_hash);
  const auto bits = std::bit_width(most.slot_hash - least.slot_hash);
  // At least one bit is left: shifting all 64 out is undefined.
  const auto bucket_bits = std::bit_width(places.size() / kBucketSize | 1);
  const auto shift = std::max(0, int(bits) - int(bucket_bits));
  const auto bucket_of = [first = least.slot_hash, shift](const Place& place) {
    return (place.slot_hash - first) >> shift;
  };
  std::vector<size_t> begins(bucket_of(most) + 2);
  for (const Place& place : places) ++begins[bucket_of(place) + 1];
  std::inclusive_scan(begins.begin(), begins.end(), begins.begin());
  std::vector<size_t> next = begins;
  std::vector<Place> spread(places.size());
  for (const Place& place : places) spread[next[bucket_of(place)]++] = place;
  places = std::move(spread);
  return begins;
}

// The entries at these places, sorted by slot hash; by digest where two keys have the same one.
std::vector<SpoolEntry> sorted_entries(std::span<const SpoolEntry> entries,
                                       std::vector<Place>& places) {
  if (places.empty()) return {};
  const std::vector<size_t> begins = spread_over_buckets(places);
  for (size_t i = 0; i + 1 < begins.size(); ++i) {
    std::ranges::sort(std::span(places).subspan(begins[i], begins[i + 1] - begins[i]),
                      [&](const Place& a, const Place& b) {
                        if (a.slot_hash != b.slot_hash) return a.slot_hash < b.slot_hash;
                        return entries[a.entry].hash.digest < entries[b.entry].hash.digest;
                      });
  }
  std::vector<SpoolEntry> sorted;
  sorted.reserve(places.size());
  for (size_t i = 0; i < places.size(); ++i) {
    constexpr size_t kAhead = 16;
    if (i + kAhead < places.size()) __builtin_prefetch(&entries[places[i + kAhead].entry]);
    sorted.push_back(entries[places[i].entry]);
  }
  return sorted;
}

uint32_t partition_of(uint64_t shard_hash) { return shard_of(shard_hash, Spool::kPartitions); }

}  // namespace

uint64_t lowest_shard_hash(uint32_t shard, uint32_t shard_count) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>(((Wide{shard} << 64) + shard_count - 1) / shard_count);
}

ShardRange::ShardRange(const Spool& spool, uint32_t shard_count, uint32_t first, uint32_t last)
    : first_(first), shards_(last - first) {
  invariant(first < last && last <= shard_count, "shards of the database");
  const uint64_t low = lowest_shard_hash(first, shard_count);
  const uint64_t high = last == shard_count ? UINT64_MAX : lowest_shard_hash(last, shard_count) - 1;
  part_ = spool.load(partition_of(low), partition_of(high));
  std::vector<std::vector<Place>> places(shards_.size());
  const size_t about = part_.entries.size() / shards_.size();
  for (std::vector<Place>& shard : places) shard.reserve(about + about / 16);
  for (uint32_t i = 0; i < part_.entries.size(); ++i) {
    const KeyHash& hash = part_.entries[i].hash;
    const uint32_t shard = shard_of(hash.shard_hash, shard_count);
    if (shard >= first && shard < last) places[shard - first].push_back({hash.slot_hash, i});
  }
  for (size_t i = 0; i < shards_.size(); ++i) {
    shards_[i] = sorted_entries(part_.entries, places[i]);
  }
  release_memory(part_.entries);
}

}  // namespace blindfuse
