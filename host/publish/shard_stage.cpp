#include "host/publish/shard_stage.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <string.h>  // explicit_bzero

#include "host/database/directory.h"
#include "host/publish/filter.h"
#include "host/publish/input.h"
#include "src/arithmetic/little_endian.h"
#include "src/base/errors.h"
#include "src/base/release_memory.h"
#include "src/program/progress.h"
#include "src/protocol/chacha20.h"

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

// Shards first .. last-1, each with its entries that count, sorted by slot hash.
class ShardRange {
 public:
  ShardRange(const Spool& spool, uint32_t shard_count, uint32_t first, uint32_t last);

  std::span<const SpoolEntry> shard(uint32_t shard) const { return shards_[shard - first_]; }

 private:
  uint32_t first_;
  SpoolPart part_;  // owns the values' bytes
  std::vector<std::vector<SpoolEntry>> shards_;
};

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

// A sequence of independent, uniform, unpredictable seeds for every shard: ChaCha20 under a key
// that is drawn for one build, with shard and try as its nonce. Equal keys give equal seeds, so
// threads may take the shards in any order.
class FilterSeeds {
 public:
  // Draws the key, 32 bytes.
  explicit FilterSeeds(const RandomSource& random) { random(key_); }
  // Wipes the key: it determines the seeds of shards that are still to be built.
  ~FilterSeeds() { explicit_bzero(key_.data(), key_.size()); }
  FilterSeeds(const FilterSeeds&) = delete;
  FilterSeeds& operator=(const FilterSeeds&) = delete;

  // The seed of try 0, 1, 2, ... of a shard. Any thread.
  uint64_t seed(uint32_t shard, uint32_t attempt) const {
    std::array<uint32_t, 2> words{};
    chacha20_keystream(key_, uint64_t{attempt} << 32 | shard, words);
    return uint64_t{words[1]} << 32 | words[0];
  }

 private:
  ChaChaKey key_{};
};

// The digest of the input of a shard's matrix, whatever the order of the input: entries are sorted
// by slot hash.
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

  // Any thread, each with other shards.
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

  ShardStageResult take_result() {
    std::ranges::sort(rebuilt_);
    return {std::move(table_), std::move(rebuilt_)};
  }

 private:
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
    // A shard has no hint of its own where responses are packed.
    return layout_.mode() == Mode::kPacked ||
           is_intact(directory_.hints() / DatabaseDirectory::hint_name(old.hint),
                     layout_.hint_part_bytes(), old.hint);
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
      // A shard whose files are lost, but whose input is what it was, gets the files that it had.
      // No other shard gets a seed that was published: keys may have been chosen against it.
      std::optional<uint64_t> published;
      if (is_unchanged(shard, entry.input)) published = previous_[shard].filter_seed;
      const Filter filter = build_filter(layout_.fuse(), slot_hashes, [&, attempt = 0u]() mutable {
        if (published) return *std::exchange(published, std::nullopt);
        return seeds_.seed(shard, attempt++);
      });
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
        const ShardRange range(spool, layout.shard_count, first, last);
        for (uint32_t shard = first; shard < last; ++shard) stage.build(shard, range.shard(shard));
        progress.advance(last - first);
      }
    } catch (...) {
      failed = true;  // the other threads need not finish work that no one will use
      throw;
    }
  });
  return stage.take_result();
}

namespace {

// A row of a block has at most one cache line: assigning a row touches one line for each of a key's
// rows, whatever the record's size.
constexpr uint32_t kBlockColumns = 64;

// R rows of `stride` bytes (16, 32 or 64), row by row, for the columns first .. first + width - 1.
// Short rows are closer together, and more of them in the cache.
struct Block {
  uint32_t first = 0;
  uint32_t width = 0;
  uint32_t stride = 0;
  std::vector<uint8_t> bytes;

  uint8_t* row(uint64_t r) { return bytes.data() + r * stride; }
  const uint8_t* row(uint64_t r) const { return bytes.data() + r * stride; }
};

template <size_t kStride>
void subtract(uint8_t* target, const uint8_t* other) {
  for (size_t c = 0; c < kStride; ++c) target[c] = static_cast<uint8_t>(target[c] - other[c]);
}

void subtract(uint8_t* target, const uint8_t* other, uint32_t stride) {
  if (stride == 16) return subtract<16>(target, other);
  if (stride == 32) return subtract<32>(target, other);
  subtract<64>(target, other);
}

// Calls fill(block) for each block of columns, with all rows zero, and hands its columns on.
void for_each_block(const Layout& layout, const ColumnSink& sink,
                    const std::function<void(Block&)>& fill) {
  const size_t row_count = layout.row_count;
  constexpr size_t kStripRows = 64;  // row_count is a multiple of 64
  Block block;
  std::vector<uint8_t> columns(row_count * kBlockColumns);
  for (uint32_t first = 0; first < layout.record_bytes(); first += kBlockColumns) {
    block.first = first;
    block.width = std::min(kBlockColumns, layout.record_bytes() - first);
    block.stride = std::max(16u, std::bit_ceil(block.width));
    block.bytes.assign(row_count * block.stride, 0);
    fill(block);
    for (size_t r = 0; r < row_count; r += kStripRows) {
      for (size_t c = 0; c < block.width; ++c) {
        uint8_t* out = columns.data() + c * row_count + r;
        for (size_t i = 0; i < kStripRows; ++i) out[i] = block.row(r + i)[c];
      }
    }
    for (size_t c = 0; c < block.width; ++c) sink({columns.data() + c * row_count, row_count});
  }
}

// Fetches the memory that a step will read while earlier steps are done: steps come in the order of
// peeling, and keys and values lie anywhere.
void fetch_ahead(std::span<const FilterStep> steps, size_t i, std::span<const SpoolEntry> entries) {
  constexpr size_t kEntryAhead = 16;
  constexpr size_t kValueAhead = 8;
  if (i + kEntryAhead < steps.size()) __builtin_prefetch(&entries[steps[i + kEntryAhead].key]);
  if (i + kValueAhead < steps.size()) {
    __builtin_prefetch(entries[steps[i + kValueAhead].key].value.data());
  }
}

}  // namespace

void make_keyword_matrix(const Layout& layout, const Filter& filter,
                         std::span<const SpoolEntry> entries, const ColumnSink& sink) {
  const FuseShape shape = layout.fuse();
  for_each_block(layout, sink, [&](Block& block) {
    for (size_t i = 0; i < filter.steps.size(); ++i) {
      fetch_ahead(filter.steps, i, entries);
      const FilterStep& step = filter.steps[i];
      const SpoolEntry& entry = entries[step.key];
      uint8_t* target = block.row(step.row);
      encode_record(layout.record, entry.hash.digest, entry.value, block.first,
                    {target, block.width});
      const auto rows = fuse_rows(shape, filter.seed, entry.hash.slot_hash);
      for (uint32_t k = 0; k < shape.arity; ++k) {
        if (rows[k] != step.row) subtract(target, block.row(rows[k]), block.stride);
      }
    }
  });
}

void make_index_matrix(const Layout& layout, std::span<const SpoolEntry> entries,
                       const ColumnSink& sink) {
  for_each_block(layout, sink, [&](Block& block) {
    for (const SpoolEntry& entry : entries) {
      encode_record(layout.record, entry.hash.digest, entry.value, block.first,
                    {block.row(entry.hash.slot_hash), block.width});
    }
  });
}

}  // namespace blindfuse
