// The hint of one epoch for look-ups. All of its parts are checked before the first query, and
// decoding does the same work for every shard.
#pragma once

#include <blindfuse/progress.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "client/database_description.h"
#include "client/hint_cache.h"

namespace blindfuse {

// The place of the cache's files.
enum class HintFiles {
  kOnDisk,    // the system holds some of them in memory, those that were read last
  kInMemory,  // a browser's: reading one costs the same as reading any other
};

// A server sees when a client's next query comes, and so how long decoding took. A part that is
// read from the disk takes longer than one that the system still has in memory. Reading the parts
// of one shard alone would reveal which look-ups are of the same shard, also across processes.
//
// So all parts are read when the epoch's hint is opened. They are then either kept in memory, or
// all of them are read again whenever answers are decoded.
class CheckedHints {
 public:
  // Uses the hint of one shard: the parts of Layout::hint_parts_of, bit sequences, one after
  // another. `i` is the position of the shard among the requested ones.
  using Use = std::function<void(size_t i, std::span<const uint8_t> hint)>;

  // Reads and checks every part in order, and reports to `progress`. Keeps the parts if the files
  // are on disk and the hint has at most memory_bytes_max bytes, and if the system gives that
  // memory. Otherwise they are read again later. `cache` and `database` outlive this object.
  //
  // Throws CacheError, which names the first part that is missing or altered, and CancelledError.
  CheckedHints(const HintCache& cache, const DatabaseDescription& database, HintFiles files,
               uint64_t memory_bytes_max, const ProgressCallback& progress);
  CheckedHints(const CheckedHints&) = delete;
  CheckedHints& operator=(const CheckedHints&) = delete;

  // Calls `use` once for each of `shards` (below S), in any order. The parts that are read, and
  // their bytes, depend only on the number of shards. Throws CacheError if any part that is read
  // again has been altered, for any shards. Throws the exceptions of `use`. Reports reading to
  // `progress`, and so can be cancelled.
  void for_each(std::span<const uint32_t> shards, const Use& use,
                const ProgressCallback& progress) const;

  // True if for_each() reads no files.
  bool are_kept() const { return kept_ != nullptr; }

 private:
  void check_all(const ProgressCallback& progress) const;
  void use_kept(std::span<const uint32_t> shards, const Use& use) const;
  void read_all_and_use(std::span<const uint32_t> shards, const Use& use,
                        const ProgressCallback& progress) const;

  const HintCache& cache_;
  const DatabaseDescription& database_;
  const HintFiles files_;
  std::unique_ptr<uint8_t[]> kept_;  // all parts, one after another, or nothing
};

}  // namespace blindfuse
