#include "host/publish/pack_stage.h"

#include <algorithm>
#include <optional>
#include <span>

#include "host/database/directory.h"
#include "host/publish/pack_batches.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/ring/modulus_switch.h"
#include "src/program/progress.h"
#include "src/protocol/public_polynomials.h"

namespace blindfuse {
namespace {

using ring::kDimension;

// For progress: a pack's table takes a processor as long as this many columns' hint polynomials,
// each of which is two transforms a block of rows, and two more.
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

}  // namespace blindfuse
