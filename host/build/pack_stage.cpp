#include "host/build/pack_stage.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "host/database/content_file.h"
#include "host/packing/hint_polynomials.h"
#include "host/packing/packing_table_builder.h"
#include "src/bit_packing.h"
#include "src/program/progress.h"
#include "src/ring/modulus_switch.h"
#include "src/system/file.h"

namespace blindfuse {
namespace {

using ring::kDimension;

constexpr size_t kPacksAtOnceMax = 16;

// Columns of the whole matrix, out of the shards' files.
class ColumnReader {
 public:
  ColumnReader(const DatabaseDirectory& directory, const Layout& layout, const ShardTable& shards)
      : directory_(directory), layout_(layout), shards_(shards), column_(layout.row_count) {}

  // R bytes, until the next call.
  std::span<const int8_t> read(uint64_t number) {
    const auto shard = static_cast<uint32_t>(number / layout_.record_bytes());
    if (shard_ != shard) {
      path_ = directory_.shards() / DatabaseDirectory::matrix_name(shards_[shard].matrix);
      file_ = open_for_reading(path_);
      shard_ = shard;
    }
    read_exactly(file_, number % layout_.record_bytes() * column_.size(), column_, path_);
    return {reinterpret_cast<const int8_t*>(column_.data()), column_.size()};
  }

 private:
  const DatabaseDirectory& directory_;
  const Layout& layout_;
  const ShardTable& shards_;
  std::optional<uint32_t> shard_;
  std::filesystem::path path_;
  FileDescriptor file_;
  std::vector<uint8_t> column_;
};

class PackStage {
 public:
  PackStage(const DatabaseDirectory& directory, const Layout& layout, const MatrixSeed& seed,
            const ShardTable& shards, WorkerThreads& threads)
      : directory_(directory),
        layout_(layout),
        shards_(shards),
        threads_(threads),
        polynomials_(seed),
        builder_(polynomials_) {}

  // What of `previous` still holds; nothing for the packs that do not.
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
    const HintPolynomials hint(polynomials_, layout_.row_count);
    Progress progress("packing", packs.size() * kDimension, Progress::Unit::kItems);
    const size_t step = std::min<size_t>(threads_.count(), kPacksAtOnceMax);
    for (size_t first = 0; first < packs.size(); first += step) {
      const auto some = packs.subspan(first, std::min(step, packs.size() - first));
      const std::vector<uint32_t> hints = hints_of(hint, some, progress);
      threads_.run_each(some.size(), [&](unsigned, size_t i) {
        constexpr size_t kWords = kDimension * kDimension;
        entries[some[i]] = write(std::span(hints).subspan(i * kWords, kWords));
      });
    }
  }

 private:
  uint64_t first_column(uint32_t pack) const { return uint64_t{pack} * kDimension; }
  uint64_t last_column(uint32_t pack) const {
    return std::min(first_column(pack) + kDimension, layout_.column_count()) - 1;
  }

  bool same_columns(uint32_t pack, const ShardTable& previous) const {
    const uint64_t first = first_column(pack) / layout_.record_bytes();
    const uint64_t last = last_column(pack) / layout_.record_bytes();
    for (uint64_t shard = first; shard <= last; ++shard) {
      if (previous[shard].matrix != shards_[shard].matrix) return false;
    }
    return true;
  }

  bool is_there(const PackEntry& entry) const {
    return is_intact(directory_.packs() / DatabaseDirectory::pack_name(entry.table), kTableBytes,
                     entry.table) &&
           is_intact(directory_.hints() / DatabaseDirectory::hint_name(entry.mask),
                     layout_.hint_part_bytes(), entry.mask);
  }

  // The hint polynomials of the packs' columns, one after another; zeros for columns that there are
  // not. All threads work at one pack when there is but one.
  std::vector<uint32_t> hints_of(const HintPolynomials& hint, std::span<const uint32_t> packs,
                                 Progress& progress) {
    std::vector<uint32_t> hints(packs.size() * kDimension * kDimension);
    std::vector<ColumnReader> readers;
    for (unsigned i = 0; i < threads_.count(); ++i) {
      readers.emplace_back(directory_, layout_, shards_);
    }
    threads_.run_each(packs.size() * kDimension, [&](unsigned thread, size_t i) {
      const uint64_t column = first_column(packs[i / kDimension]) + i % kDimension;
      if (column < layout_.column_count()) {
        hint.compute(readers[thread].read(column),
                     ring::MutablePolynomial(hints.data() + i * kDimension, kDimension));
      }
      progress.advance(1);
    });
    return hints;
  }

  PackEntry write(std::span<const uint32_t> hints) const {
    std::vector<uint32_t> table(kTableWords);
    std::array<uint32_t, kDimension> mask;
    builder_.build(hints, MutablePackingTable(table), mask);
    PackEntry entry;
    const std::span table_bytes(reinterpret_cast<const uint8_t*>(table.data()), kTableBytes);
    entry.table = sha256(table_bytes);
    PendingFile table_file(directory_.packs());
    table_file.write(table_bytes);
    commit_content(table_file, directory_.packs() / DatabaseDirectory::pack_name(entry.table),
                   kTableBytes, entry.table);

    for (uint32_t& word : mask) {
      word = restore_word(ring::lower(word, layout_.hint_bits), layout_.hint_bits);
    }
    std::vector<uint8_t> packed(layout_.hint_part_bytes());
    pack_rounded(mask, layout_.hint_bits, packed);
    entry.mask = sha256(packed);
    PendingFile mask_file(directory_.hints());
    mask_file.write(packed);
    commit_content(mask_file, directory_.hints() / DatabaseDirectory::hint_name(entry.mask),
                   packed.size(), entry.mask);
    return entry;
  }

  const DatabaseDirectory& directory_;
  const Layout& layout_;
  const ShardTable& shards_;
  WorkerThreads& threads_;
  const ring::PublicPolynomials polynomials_;
  const PackingTableBuilder builder_;
};

}  // namespace

PackStageResult build_packs(const DatabaseDirectory& directory, const Layout& layout,
                            const MatrixSeed& seed, const ShardTable& shards,
                            const EpochTable& previous, WorkerThreads& threads) {
  PackStage stage(directory, layout, seed, shards, threads);
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

}  // namespace blindfuse
