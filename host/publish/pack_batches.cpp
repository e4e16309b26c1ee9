#include "host/publish/pack_batches.h"

#include <array>
#include <filesystem>
#include <optional>
#include <string>

#include "host/engines/engine_factory.h"
#include "src/base/errors.h"
#include "src/system/file.h"
#include "src/system/random.h"

namespace blindfuse {
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

// Makes a pack that a device has made again on the processor.
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
                        " columns is not what the processor makes of the same columns; nothing is "
                        "published");
}

// Sealed, with all columns of the packs.
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
