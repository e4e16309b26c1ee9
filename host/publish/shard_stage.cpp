#include "host/publish/shard_stage.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "host/database/directory.h"
#include "host/publish/filter.h"
#include "host/publish/filter_seeds.h"
#include "host/publish/shard_matrix.h"
#include "src/arithmetic/little_endian.h"
#include "src/base/errors.h"
#include "src/program/progress.h"

namespace blindfuse {
namespace {

// What a shard's matrix is made from, whatever the order of the input: entries are sorted by slot
// hash.
Sha256Digest input_digest(std::span<const SpoolEntry> entries) {
  constexpr size_t kHeaderBytes = 28;
  constexpr size_t kBytesAtOnce = 16 * 1024;  // a call of the hash costs as much as many bytes
  Sha256 hash;
  std::vector<uint8_t> bytes;
  bytes.reserve(kBytesAtOnce + kHeaderBytes + kValueBytesMax);
  for (const SpoolEntry& entry : entries) {
    const size_t at = bytes.size();
    bytes.resize(at + kHeaderBytes + entry.value.size());
    uint8_t* header = bytes.data() + at;
    store_le(header, entry.hash.slot_hash);
    std::ranges::copy(entry.hash.digest, header + 8);
    store_le(header + 24, static_cast<uint32_t>(entry.value.size()));
    std::ranges::copy(entry.value, header + kHeaderBytes);
    if (bytes.size() < kBytesAtOnce) continue;
    hash.update(bytes);
    bytes.clear();
  }
  hash.update(bytes);
  return hash.finish();
}

class ShardStage {
 public:
  ShardStage(const DatabaseDirectory& directory, DatabaseWriter& writer, const Layout& layout,
             const ShardTable& previous, const RandomSource& random)
      : directory_(directory),
        writer_(writer),
        layout_(layout),
        previous_(previous),
        seeds_(random),
        table_(layout.shard_count) {}

  void build_range(const ShardRange& range, uint32_t first, uint32_t last) {
    for (uint32_t shard = first; shard < last; ++shard) build(shard, range.shard(shard));
  }

  ShardStageResult take_result() {
    std::ranges::sort(rebuilt_);
    return {std::move(table_), std::move(rebuilt_)};
  }

 private:
  void build(uint32_t shard, std::span<const SpoolEntry> entries) {
    ShardEntry& entry = table_[shard];
    entry.key_count = entries.size();
    entry.input = input_digest(entries);
    if (keeps(shard, entry.input)) {
      entry = previous_[shard];
      return;
    }
    write_matrix(shard, entries, entry);
    const std::lock_guard lock(mutex_);
    rebuilt_.push_back(shard);
  }

  bool is_unchanged(uint32_t shard, const Sha256Digest& input) const {
    return !previous_.empty() && previous_[shard].input == input;
  }

  bool keeps(uint32_t shard, const Sha256Digest& input) const {
    if (!is_unchanged(shard, input)) return false;
    const ShardEntry& old = previous_[shard];
    if (!is_intact(directory_.shards() / DatabaseDirectory::matrix_name(old.matrix),
                   layout_.shard_matrix_bytes(), old.matrix)) {
      return false;
    }
    // Where responses are packed a shard has no hint of its own.
    return layout_.mode() == Mode::kPacked ||
           is_intact(directory_.hints() / DatabaseDirectory::hint_name(old.hint),
                     layout_.hint_part_bytes(), old.hint);
  }

  // Seeds to try. A shard whose files are lost, but whose input is what it was, gets the files that
  // it had. No other shard gets a seed that was published: keys may have been chosen against it.
  NextSeed next_seed(uint32_t shard, const Sha256Digest& input) const {
    std::optional<uint64_t> published;
    if (is_unchanged(shard, input)) published = previous_[shard].filter_seed;
    return [this, shard, published, attempt = 0u]() mutable {
      if (published) return *std::exchange(published, std::nullopt);
      return seeds_.seed(shard, attempt++);
    };
  }

  void write_matrix(uint32_t shard, std::span<const SpoolEntry> entries, ShardEntry& entry) const {
    NewFile file = writer_.create(kShardsFolder);
    Sha256 hash;
    const ColumnSink sink = [&](std::span<const uint8_t> column) {
      file.write(column);
      hash.update(column);
    };
    if (layout_.kind == DatabaseKind::kIndex) {
      make_index_matrix(layout_, entries, sink);
    } else {
      std::vector<uint64_t> slot_hashes(entries.size());
      std::ranges::transform(entries, slot_hashes.begin(),
                             [](const SpoolEntry& e) { return e.hash.slot_hash; });
      const Filter filter =
          build_filter(layout_.fuse(), slot_hashes, next_seed(shard, entry.input));
      entry.filter_seed = filter.seed;
      make_keyword_matrix(layout_, filter, entries, sink);
    }
    entry.matrix = hash.finish();
    file.commit(entry.matrix);
  }

  const DatabaseDirectory& directory_;
  DatabaseWriter& writer_;
  const Layout& layout_;
  const ShardTable& previous_;
  const FilterSeeds seeds_;
  ShardTable table_;
  std::mutex mutex_;
  std::vector<uint32_t> rebuilt_;
};

}  // namespace

ShardStageResult build_shards(const DatabaseDirectory& directory, DatabaseWriter& writer,
                              const Layout& layout, const Spool& spool, const ShardTable& previous,
                              const RandomSource& random, WorkerThreads& threads) {
  ShardStage stage(directory, writer, layout, previous, random);
  Progress progress("filters", layout.shard_count, Progress::Unit::kItems);
  // A thread takes as many shards at once as a partition of the spool has, so that none is read
  // many times.
  const uint32_t step = std::max(1u, layout.shard_count / Spool::kPartitions);
  std::atomic<uint32_t> next = 0;
  std::atomic<bool> failed = false;
  threads.run([&](unsigned) {
    try {
      for (uint32_t first = next.fetch_add(step); first < layout.shard_count && !failed;
           first = next.fetch_add(step)) {
        const uint32_t last = std::min(first + step, layout.shard_count);
        stage.build_range({spool, layout.shard_count, first, last}, first, last);
        progress.advance(last - first);
      }
    } catch (...) {
      failed = true;  // the other threads need not finish work that no one will use
      throw;
    }
  });
  return stage.take_result();
}

}  // namespace blindfuse
