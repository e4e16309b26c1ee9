#include "host/database/loaded_database.h"

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "host/database/directory.h"
#include "host/system/memory.h"
#include "src/base/errors.h"
#include "src/program/progress.h"
#include "src/system/file.h"
#include "src/system/random.h"

namespace blindfuse {

namespace {

// A file of a known size and hash, read from its beginning to its end.
class CheckedFile {
 public:
  CheckedFile(std::filesystem::path path, uint64_t bytes, const Sha256Digest& expected)
      : path_(std::move(path)), file_(open_for_reading(path_)), expected_(expected) {
    const uint64_t size = file_size(file_, path_);
    if (size != bytes) {
      throw InputError(path_.string() + " has " + std::to_string(size) + " bytes; it should have " +
                       std::to_string(bytes));
    }
  }

  void read(std::span<uint8_t> bytes) {
    read_exactly(file_, offset_, bytes, path_);
    offset_ += bytes.size();
    hash_.update(bytes);
  }

  // Called after everything has been read.
  void check_hash() {
    if (hash_.finish() == expected_) return;
    throw InputError(path_.string() + " is altered: its content does not match its hash");
  }

 private:
  const std::filesystem::path path_;
  const FileDescriptor file_;
  const Sha256Digest expected_;
  Sha256 hash_;
  uint64_t offset_ = 0;
};

// Reads the columns of a shard's file into the engine, some at a time: a shard may be the whole
// matrix. on_columns is called for each of them, and may read it.
template <typename OnColumns>
void read_columns(CheckedFile file, uint64_t first, uint64_t count, Engine& engine,
                  const OnColumns& on_columns) {
  constexpr uint64_t kBytesAtOnce = 16 << 20;
  const uint64_t step = std::clamp<uint64_t>(kBytesAtOnce / engine.row_count(), 1, count);
  std::vector<uint8_t> columns(step * engine.row_count());
  for (uint64_t done = 0; done < count; done += step) {
    columns.resize(std::min(step, count - done) * engine.row_count());
    file.read(columns);
    on_columns(first + done, std::span<const uint8_t>(columns));
    engine.set_columns(first + done, columns);
  }
  file.check_hash();
}

SharedHintPart read_hint(CheckedFile file, uint64_t size) {
  std::vector<uint8_t> bytes(size);
  file.read(bytes);
  file.check_hash();
  return std::make_shared<const std::vector<uint8_t>>(std::move(bytes));
}

SharedPackingTable read_packing_table(CheckedFile file) {
  const auto memory = map_memory("a packing table", kTableBytes);
  file.read({static_cast<uint8_t*>(memory.get()), kTableBytes});
  file.check_hash();
  return {memory, static_cast<const uint32_t*>(memory.get())};
}

// True if shards, hints and packing tables of the same hash are the same bytes at the same place.
bool same_sizes(const Layout& one, const Layout& other) {
  return one.mode() == other.mode() && one.row_count == other.row_count &&
         one.shard_count == other.shard_count && one.record_bytes() == other.record_bytes() &&
         one.hint_part_bytes() == other.hint_part_bytes();
}

// The columns of the shards that have not changed, run after run of them.
std::vector<ColumnRange> unchanged_columns(const LoadedDatabase& database,
                                           const LoadedDatabase& previous) {
  const Layout& layout = database.manifest.layout;
  const uint64_t width = layout.record_bytes();
  const auto is_same = [&](uint32_t shard) {
    return database.table.shards[shard].matrix == previous.table.shards[shard].matrix;
  };
  std::vector<ColumnRange> columns;
  for (uint32_t first = 0, last; first < layout.shard_count; first = last) {
    last = first + 1;
    if (!is_same(first)) continue;
    while (last < layout.shard_count && is_same(last)) ++last;
    columns.push_back({first * width, (last - first) * width});
  }
  return columns;
}

// Takes these from the previous epoch's engine, as far as it is available. Returns the shards whose
// matrices are there now.
std::vector<bool> share_matrices(LoadedDatabase& database, std::span<const ColumnRange> columns,
                                 const LoadedDatabase* previous,
                                 const std::function<void()>& on_step) {
  const Layout& layout = database.manifest.layout;
  const uint64_t width = layout.record_bytes();
  std::vector<bool> is_there(layout.shard_count);
  // A shard that is not read again has products only if the previous canary is the same.
  if (database.canary && (previous == nullptr || !previous->canary ||
                          previous->canary->words != database.canary->words)) {
    return is_there;
  }
  for (const auto& [first, count] : columns) {
    on_step();
    if (!database.engine->share_columns(first, count, *previous->engine)) continue;
    const auto shard = is_there.begin() + static_cast<ptrdiff_t>(first / width);
    std::fill(shard, shard + static_cast<ptrdiff_t>(count / width), true);
    if (database.canary) {
      std::copy_n(previous->canary->products.begin() + static_cast<ptrdiff_t>(first), count,
                  database.canary->products.begin() + static_cast<ptrdiff_t>(first));
    }
    database.reused_bytes += count / width * layout.shard_matrix_bytes();
  }
  return is_there;
}

// Takes hints and packing tables that have not changed; the others stay null.
void reuse_parts(LoadedDatabase& database, EpochDownloads& downloads,
                 const LoadedDatabase& previous) {
  const Layout& layout = database.manifest.layout;
  for (uint32_t i = 0; i < layout.hint_part_count(); ++i) {
    if (database.table.hint_hash(i) != previous.table.hint_hash(i)) continue;
    downloads.hints[i] = previous.downloads->hints[i];
    database.reused_bytes += layout.hint_part_bytes();
  }
  for (uint32_t i = 0; i < layout.pack_count(); ++i) {
    if (database.table.packs[i].table != previous.table.packs[i].table) continue;
    database.packing_tables[i] = previous.packing_tables[i];
    database.reused_bytes += kTableBytes;
  }
}

// Checks the memory for all parts together, before anything is copied or read.
void check_epoch_memory(const LoadedDatabase& database, std::span<const ColumnRange> shared,
                        const LoadedDatabase* previous) {
  const Layout& layout = database.manifest.layout;
  const uint64_t parts = layout.hint_bytes() + layout.packing_table_bytes() - database.reused_bytes;
  const uint64_t matrix =
      database.engine->host_bytes(shared, previous == nullptr ? nullptr : previous->engine.get());
  check_memory(previous == nullptr ? "the database" : "the new part of the epoch", matrix + parts);
}

// Reads the files that are not in memory yet, one after another.
class EpochFiles {
 public:
  EpochFiles(const DatabaseDirectory& directory, LoadedDatabase& database,
             EpochDownloads& downloads, const std::function<void()>& on_step)
      : directory_(directory),
        database_(database),
        downloads_(downloads),
        layout_(database.manifest.layout),
        on_step_(on_step),
        progress_("loading",
                  layout_.matrix_bytes() + layout_.hint_bytes() + layout_.packing_table_bytes() -
                      database.reused_bytes,
                  Progress::Unit::kBytes) {
    if (database.canary) canary_products_.emplace(database.canary->words);
  }

  void load_matrices(const std::vector<bool>& is_there) {
    for (uint32_t shard = 0; shard < layout_.shard_count; ++shard) {
      if (is_there[shard]) continue;
      const Sha256Digest& hash = database_.table.shards[shard].matrix;
      read_columns(
          {directory_.shards() / DatabaseDirectory::matrix_name(hash), layout_.shard_matrix_bytes(),
           hash},
          uint64_t{shard} * layout_.record_bytes(), layout_.record_bytes(), *database_.engine,
          [this](uint64_t first, std::span<const uint8_t> columns) { on_columns(first, columns); });
      progress_.advance(layout_.shard_matrix_bytes());
    }
  }

  void load_hints() {
    for (uint32_t i = 0; i < layout_.hint_part_count(); ++i) {
      if (downloads_.hints[i]) continue;
      on_step_();
      const Sha256Digest& hash = database_.table.hint_hash(i);
      downloads_.hints[i] = read_hint({directory_.hints() / DatabaseDirectory::hint_name(hash),
                                       layout_.hint_part_bytes(), hash},
                                      layout_.hint_part_bytes());
      progress_.advance(layout_.hint_part_bytes());
    }
  }

  void load_packing_tables() {
    for (uint32_t i = 0; i < layout_.pack_count(); ++i) {
      if (database_.packing_tables[i]) continue;
      on_step_();
      const Sha256Digest& hash = database_.table.packs[i].table;
      database_.packing_tables[i] = read_packing_table(
          {directory_.packs() / DatabaseDirectory::pack_name(hash), kTableBytes, hash});
      progress_.advance(kTableBytes);
    }
  }

 private:
  void on_columns(uint64_t first, std::span<const uint8_t> columns) {
    on_step_();
    if (!canary_products_) return;
    canary_products_->multiply(
        columns,
        std::span(database_.canary->products).subspan(first, columns.size() / layout_.row_count));
  }

  const DatabaseDirectory& directory_;
  LoadedDatabase& database_;
  EpochDownloads& downloads_;
  const Layout& layout_;
  const std::function<void()>& on_step_;
  Progress progress_;
  std::optional<CanaryProducts> canary_products_;
};

LoadedDatabase load_epoch(const DatabaseDirectory& directory, std::string manifest_text,
                          const EngineMaker& engines, const LoadedDatabase* previous,
                          const std::function<void()>& on_step, size_t batch_max) {
  LoadedDatabase database;
  const auto downloads = std::make_shared<EpochDownloads>();
  downloads->manifest_text = std::move(manifest_text);
  ParsedManifest parsed = parse_manifest(downloads->manifest_text);
  check_signature(parsed);
  database.manifest = parsed.manifest;
  database.epoch = parsed.epoch;
  database.published_at = directory.published_at();
  const Layout& layout = database.manifest.layout;
  downloads->table = directory.read_table(database.manifest);
  database.table = parse_epoch_table(downloads->table, layout);
  database.retired = directory.read_retired(database.epoch);
  ServingNeeds needs{.batch_max = batch_max,
                     .pack_count = layout.pack_count(),
                     .bucket_count = layout.bucket_count()};
  if (layout.second) needs.second = second_level_spec(layout);
  database.engine = engines.make_serving_engine(layout.row_count, layout.column_count(), needs);
  if (engines.computes_on_device()) {
    database.canary.emplace();
    database.canary->words = canary_words(layout.row_count, layout.query_bits);
    database.canary->bucket_count = layout.bucket_count();
    database.canary->products.resize(layout.column_count());
    database.canary->weights = product_weights(layout.column_count());
  }
  downloads->hints.resize(layout.hint_part_count());
  database.packing_tables.resize(layout.pack_count());
  if (previous != nullptr && !same_sizes(layout, previous->manifest.layout)) previous = nullptr;
  std::vector<ColumnRange> shared;
  if (previous != nullptr) {
    shared = unchanged_columns(database, *previous);
    reuse_parts(database, *downloads, *previous);
  }
  check_epoch_memory(database, shared, previous);
  const std::vector<bool> is_there = share_matrices(database, shared, previous, on_step);
  EpochFiles files(directory, database, *downloads, on_step);
  files.load_packing_tables();
  files.load_hints();
  files.load_matrices(is_there);
  database.engine->seal();
  database.downloads = downloads;
  return database;
}

}  // namespace

LoadedDatabase load_database(const std::filesystem::path& root, const EngineMaker& engines,
                             const LoadedDatabase* previous, const std::function<void()>& on_step,
                             size_t batch_max) {
  const DatabaseDirectory directory(root);
  for (;;) {
    const std::string manifest_text = directory.read_manifest_text();
    // A build may replace the epoch, and delete its files, while we are reading them.
    try {
      return load_epoch(directory, manifest_text, engines, previous, on_step, batch_max);
    } catch (const UsageError&) {
      throw;  // of the engine, whatever the directory holds
    } catch (const DeviceLostError&) {
      throw;  // the same
    } catch (const NewerFormatError& error) {
      directory.fail_newer(error);
    } catch (const InputError& error) {
      if (directory.read_manifest_text() != manifest_text) continue;
      throw InputError(root.string() + ": " + error.what());
    } catch (const ResourceError&) {
      // A network file system says of a file that was deleted that its handle is stale.
      if (directory.read_manifest_text() != manifest_text) continue;
      throw;
    }
  }
}

namespace {

using Seed = std::array<uint32_t, 8>;

const Seed& process_seed() {
  static const Seed seed = [] {
    Seed drawn{};
    fill_from_system({reinterpret_cast<uint8_t*>(drawn.data()), sizeof drawn});
    return drawn;
  }();
  return seed;
}

}  // namespace

std::vector<uint32_t> canary_words(uint64_t row_count, uint32_t query_bits) {
  // The words are not secret. They must only be unknown when a fault is made.
  std::seed_seq sequence(process_seed().begin(), process_seed().end());
  std::mt19937 numbers(sequence);
  std::vector<uint32_t> words(row_count);
  const uint32_t mask = ~uint32_t{0} << (32 - query_bits);
  for (uint32_t& word : words) word = static_cast<uint32_t>(numbers()) & mask;
  return words;
}

std::vector<uint32_t> product_weights(uint64_t column_count) {
  std::vector<uint32_t> weights(column_count);
  fill_from_system({reinterpret_cast<uint8_t*>(weights.data()), weights.size() * sizeof(uint32_t)});
  for (uint32_t& weight : weights) weight |= 1;
  return weights;
}

CanaryProducts::CanaryProducts(std::span<const uint32_t> words)
    : low_(words.size()), high_(words.size()) {
  for (size_t r = 0; r < words.size(); ++r) {
    low_[r] = static_cast<int16_t>(words[r]);
    high_[r] = static_cast<int16_t>((words[r] - static_cast<uint32_t>(int32_t{low_[r]})) >> 16);
  }
}

void CanaryProducts::multiply(std::span<const uint8_t> columns,
                              std::span<uint32_t> products) const {
  const size_t rows = low_.size();
  invariant(columns.size() == products.size() * rows, "whole columns");
  // Bytes as numbers of 16 bits, of which a cache keeps a block.
  constexpr size_t kBlock = 256;
  std::array<int16_t, kBlock> bytes;
  for (size_t c = 0; c < products.size(); ++c) {
    const uint8_t* const column = columns.data() + c * rows;
    uint32_t low = 0, high = 0;
    for (size_t first = 0; first < rows; first += kBlock) {
      const size_t count = std::min(kBlock, rows - first);
      for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<int8_t>(column[first + i]);
      // The sums of a block fit 32 bits with their sign: 2^8 products of at most 2^15 times 2^7.
      int32_t block_low = 0, block_high = 0;
      for (size_t i = 0; i < count; ++i) {
        block_low += int32_t{low_[first + i]} * int32_t{bytes[i]};
        block_high += int32_t{high_[first + i]} * int32_t{bytes[i]};
      }
      low += static_cast<uint32_t>(block_low);
      high += static_cast<uint32_t>(block_high);
    }
    products[c] = low + (high << 16);
  }
}

}  // namespace blindfuse
