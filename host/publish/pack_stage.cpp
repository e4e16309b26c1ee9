#include "host/publish/pack_stage.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "host/database/directory.h"
#include "host/engines/engine_factory.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/ring/modulus_switch.h"
#include "src/base/errors.h"
#include "src/program/progress.h"
#include "src/protocol/public_polynomials.h"
#include "src/system/file.h"
#include "src/system/random.h"

namespace blindfuse {

namespace {

using ring::kDimension;

// The weight of a table in the progress: a pack's table takes a processor as long as this many
// columns' hint polynomials, each of which is two transforms a block of rows, and two more.
uint64_t columns_worth_a_table(const Layout& layout) {
  return std::max<uint64_t>(1, 6'000 / (layout.row_count / kDimension + 1));
}

class PackStage {
 public:
  PackStage(const DatabaseDirectory& directory, DatabaseWriter& writer, const Layout& layout,
            const MatrixSeed& seed, const ShardTable& shards, const EngineMaker& engines,
            WorkerThreads& threads)
      : directory_(directory),
        writer_(writer),
        layout_(layout),
        engines_(engines),
        threads_(threads),
        polynomials_(seed),
        source_{directory, layout, shards, polynomials_} {}

  // The packs of `previous` that still hold; nothing for those that do not.
  std::vector<std::optional<PackEntry>> kept(const EpochTable& previous) {
    std::vector<std::optional<PackEntry>> kept(layout_.pack_count());
    if (previous.packs.empty()) return kept;
    threads_.run_each(kept.size(), [&](unsigned, size_t i) {
      const auto pack = static_cast<uint32_t>(i);
      if (same_columns(pack, previous.shards) && is_there(previous.packs[pack])) {
        kept[pack] = previous.packs[pack];
      }
    });
    return kept;
  }

  // Makes these packs, some at a time.
  void build(std::span<const uint32_t> packs, std::vector<PackEntry>& entries) {
    if (packs.empty()) return;
    PackBatches batches(source_, engines_, threads_);
    const uint64_t table_work = columns_worth_a_table(layout_);
    uint64_t work = packs.size() * table_work;
    for (const uint32_t pack : packs) work += source_.column_count(pack);
    Progress progress("packing", work, Progress::Unit::kItems);
    const size_t step = batches.packs_max();
    for (size_t first = 0; first < packs.size(); first += step) {
      const auto some = packs.subspan(first, std::min(step, packs.size() - first));
      batches.make(
          some, [&](uint64_t count) { progress.advance(count); },
          [&](size_t i, MutablePackingTable table, ring::MutablePolynomial mask) {
            entries[some[i]] = write(table, mask);
            progress.advance(table_work);
          });
    }
  }

 private:
  bool same_columns(uint32_t pack, const ShardTable& previous) const {
    const uint64_t first = PackSource::first_column(pack);
    const uint64_t last = first + source_.column_count(pack) - 1;
    for (uint64_t shard = first / layout_.record_bytes(); shard <= last / layout_.record_bytes();
         ++shard) {
      if (previous[shard].matrix != source_.shards[shard].matrix) return false;
    }
    return true;
  }

  bool is_there(const PackEntry& entry) const {
    return is_intact(directory_.packs() / DatabaseDirectory::pack_name(entry.table), kTableBytes,
                     entry.table) &&
           is_intact(directory_.hints() / DatabaseDirectory::hint_name(entry.mask),
                     layout_.hint_part_bytes(), entry.mask);
  }

  PackEntry write(PackingTable table, ring::MutablePolynomial mask) const {
    PackEntry entry;
    const std::span table_bytes(reinterpret_cast<const uint8_t*>(table.data()), kTableBytes);
    entry.table = sha256(table_bytes);
    NewFile table_file = writer_.create(kPacksFolder);
    table_file.write(table_bytes);
    table_file.commit(entry.table);

    for (uint32_t& word : mask) {
      word = restore_word(ring::switch_from_q(word, layout_.hint_bits), layout_.hint_bits);
    }
    std::vector<uint8_t> packed(layout_.hint_part_bytes());
    write_bit_sequence(mask, layout_.hint_bits, packed);
    entry.mask = sha256(packed);
    NewFile mask_file = writer_.create(kHintsFolder);
    mask_file.write(packed);
    mask_file.commit(entry.mask);
    return entry;
  }

  const DatabaseDirectory& directory_;
  DatabaseWriter& writer_;
  const Layout& layout_;
  const EngineMaker& engines_;
  WorkerThreads& threads_;
  const ring::PublicPolynomials polynomials_;
  const PackSource source_;
};

}  // namespace

PackStageResult build_packs(const DatabaseDirectory& directory, DatabaseWriter& writer,
                            const Layout& layout, const MatrixSeed& seed, const ShardTable& shards,
                            const EpochTable& previous, const EngineMaker& engines,
                            WorkerThreads& threads) {
  PackStage stage(directory, writer, layout, seed, shards, engines, threads);
  PackStageResult result;
  std::vector<uint32_t> to_build;
  const auto kept = stage.kept(previous);
  for (uint32_t pack = 0; pack < layout.pack_count(); ++pack) {
    result.packs.push_back(kept[pack].value_or(PackEntry{}));
    if (!kept[pack]) to_build.push_back(pack);
  }
  stage.build(to_build, result.packs);
  result.rebuilt = static_cast<uint32_t>(to_build.size());
  return result;
}

namespace {

using ring::kDimension;

// Reads columns of a whole matrix from the shards' files, for one thread.
class ColumnReader {
 public:
  explicit ColumnReader(const PackSource& source) : source_(source) {}

  // Reads a column of R bytes. Throws InputError if a shard's file has changed.
  void read(uint64_t column, std::span<uint8_t> bytes) {
    const auto shard = static_cast<uint32_t>(column / source_.layout.record_bytes());
    if (shard_ != shard) {
      path_ =
          source_.directory.shards() / DatabaseDirectory::matrix_name(source_.shards[shard].matrix);
      file_ = open_for_reading(path_);
      shard_ = shard;
    }
    read_exactly(file_, column % source_.layout.record_bytes() * bytes.size(), bytes, path_);
  }

 private:
  const PackSource& source_;
  std::optional<uint32_t> shard_;
  std::filesystem::path path_;
  FileDescriptor file_;
};

// Columns of one bucket that lie next to each other in the pack maker, too.
struct Columns {
  uint64_t first;
  uint64_t count;
  uint64_t to;
};

// The packs' columns, each pack full except the last, cut between buckets and into pieces that a
// thread reads at once: many for every thread, so that all end at about the same time, of 16 MiB at
// most.
std::vector<Columns> pieces_of(const PackSource& source, std::span<const uint32_t> packs,
                               unsigned thread_count) {
  constexpr uint64_t kBytesMax = 16 << 20;
  constexpr uint64_t kPiecesAThread = 128;
  const uint64_t most = std::max<uint64_t>(1, kBytesMax / source.layout.row_count);
  const uint64_t step =
      std::clamp<uint64_t>(packs.size() * kPackColumns / (kPiecesAThread * thread_count), 1, most);
  std::vector<Columns> pieces;
  uint64_t total = 0;
  for (const uint32_t pack : packs) {
    const uint64_t last = PackSource::first_column(pack) + source.column_count(pack);
    for (uint64_t first = PackSource::first_column(pack); first < last;) {
      const uint64_t bucket_last =
          (uint64_t{source.bucket_of(first)} + 1) * source.layout.bucket_column_count();
      const uint64_t count = std::min({step, last - first, bucket_last - first});
      pieces.push_back({first, count, total});
      first += count;
      total += count;
    }
  }
  return pieces;
}

}  // namespace

PackBatches::PackBatches(const PackSource& source, const EngineMaker& engines,
                         WorkerThreads& threads)
    : source_(source),
      engines_(engines),
      threads_(threads),
      key_masks_(source.polynomials.key_masks()) {}

size_t PackBatches::packs_max() const {
  return engines_.packs_at_once(source_.layout.row_count, threads_.count());
}

// Packs in ascending order have such buckets, too; neighbours may have the same one.
PackBatches::Buckets PackBatches::buckets_of(std::span<const uint32_t> packs) const {
  Buckets buckets;
  for (const uint32_t pack : packs) {
    const uint64_t first = PackSource::first_column(pack);
    const uint32_t last_bucket = source_.bucket_of(first + source_.column_count(pack) - 1);
    for (uint32_t bucket = source_.bucket_of(first); bucket <= last_bucket; ++bucket) {
      if (!buckets.numbers.empty() && buckets.numbers.back() == bucket) continue;
      buckets.numbers.push_back(bucket);
      const std::vector<uint32_t> words =
          source_.polynomials.blocks(source_.layout.row_count, bucket);
      buckets.blocks.insert(buckets.blocks.end(), words.begin(), words.end());
    }
  }
  return buckets;
}

void PackBatches::make(std::span<const uint32_t> packs, const OnColumns& on_columns,
                       const Write& write) {
  const Buckets buckets = buckets_of(packs);
  const std::unique_ptr<PackMaker> maker = maker_of(packs, buckets, on_columns);
  std::optional<size_t> checked;
  if (engines_.computes_on_device() && !packs.empty()) {
    uint64_t number = 0;
    fill_from_system({reinterpret_cast<uint8_t*>(&number), sizeof number});
    checked = number % packs.size();
  }
  threads_.run_each(packs.size(), [&](unsigned, size_t i) {
    std::vector<uint32_t> table(kTableWords);
    std::array<uint32_t, kDimension> mask;
    maker->make(static_cast<uint32_t>(i), MutablePackingTable(table), mask);
    if (i == checked) require_right(packs[i], PackingTable(table), mask);
    write(i, MutablePackingTable(table), mask);
  });
}

// Makes a pack of a device again on the processor, and compares.
void PackBatches::require_right(uint32_t pack, PackingTable table,
                                std::span<const uint32_t, kDimension> mask) const {
  const uint64_t rows = source_.layout.row_count;
  const uint64_t count = source_.column_count(pack);
  const Buckets buckets = buckets_of({&pack, 1});
  const auto maker =
      make_engine_maker("cpu", 1)->make_pack_maker(buckets.blocks, key_masks_, rows, count);
  ColumnReader reader(source_);
  std::vector<uint8_t> column(rows);
  for (uint64_t c = 0; c < count; ++c) {
    const uint64_t of_matrix = PackSource::first_column(pack) + c;
    reader.read(of_matrix, column);
    maker->set_columns(c, column, buckets.place_of(source_.bucket_of(of_matrix)));
  }
  maker->seal();
  std::vector<uint32_t> table_again(kTableWords);
  std::array<uint32_t, kDimension> mask_again;
  maker->make(0, MutablePackingTable(table_again), mask_again);
  if (std::ranges::equal(table, table_again) && std::ranges::equal(mask, mask_again)) return;
  throw DeviceLostError("the GPU's kernels that make packing tables are wrong: pack " +
                        std::to_string(pack) + " of " + std::to_string(rows) + " rows and " +
                        std::to_string(count) +
                        " columns differs from the processor's; nothing is published");
}

// Returns a sealed maker with all columns of the packs.
std::unique_ptr<PackMaker> PackBatches::maker_of(std::span<const uint32_t> packs,
                                                 const Buckets& buckets,
                                                 const OnColumns& on_columns) {
  const uint64_t rows = source_.layout.row_count;
  const std::vector<Columns> pieces = pieces_of(source_, packs, threads_.count());
  const uint64_t total = pieces.empty() ? 0 : pieces.back().to + pieces.back().count;
  std::unique_ptr<PackMaker> maker =
      engines_.make_pack_maker(buckets.blocks, key_masks_, rows, total);
  std::vector<ColumnReader> readers;
  for (unsigned i = 0; i < threads_.count(); ++i) readers.emplace_back(source_);
  std::vector<std::vector<uint8_t>> buffers(threads_.count());
  threads_.run_each(pieces.size(), [&](unsigned thread, size_t i) {
    const Columns& piece = pieces[i];
    std::vector<uint8_t>& bytes = buffers[thread];
    bytes.resize(piece.count * rows);
    for (uint64_t c = 0; c < piece.count; ++c) {
      readers[thread].read(piece.first + c, std::span(bytes).subspan(c * rows, rows));
    }
    maker->set_columns(piece.to, bytes, buckets.place_of(source_.bucket_of(piece.first)));
    on_columns(piece.count);
  });
  maker->seal();
  return maker;
}

}  // namespace blindfuse
