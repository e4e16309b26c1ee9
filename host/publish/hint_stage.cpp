#include "host/publish/hint_stage.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "host/engines/engine_factory.h"
#include "host/hint/hint.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/base/errors.h"
#include "src/program/progress.h"
#include "src/system/file.h"
#include "src/system/random.h"

namespace blindfuse {
namespace {

// Making A costs the same for one column as for thousands. The memory of their hint (n words each)
// and of their own bytes limits the columns.
constexpr uint64_t kColumnsMax = 8192;
constexpr uint64_t kMatrixBytesMax = uint64_t{1} << 30;
constexpr uint64_t kOpenFilesMax = 256;

class HintStage {
 public:
  HintStage(const DatabaseDirectory& directory, DatabaseWriter& writer, const Layout& layout,
            const MatrixSeed& seed, const EngineMaker& engines, WorkerThreads& threads,
            ShardTable& table, uint64_t shard_total)
      : directory_(directory),
        writer_(writer),
        layout_(layout),
        public_matrix_(seed, layout.lwe->dimension),
        engines_(engines),
        threads_(threads),
        table_(table),
        progress_("hint", shard_total * layout.shard_matrix_bytes(), Progress::Unit::kBytes) {}

  void build(std::span<const uint32_t> shards) {
    std::vector<NewFile> files;
    std::vector<Sha256> hashes(shards.size());
    for (size_t i = 0; i < shards.size(); ++i) files.push_back(writer_.create(kHintsFolder));
    const uint64_t width =
        std::min<uint64_t>(layout_.record_bytes(), columns_at_once(layout_.row_count));
    for (uint64_t first = 0; first < layout_.record_bytes(); first += width) {
      const uint64_t count = std::min(width, layout_.record_bytes() - first);
      const std::vector<uint32_t> hint = compute(shards, first, count);
      const uint64_t words = count * layout_.lwe->dimension;
      std::vector<uint8_t> packed(bit_sequence_bytes(words, layout_.hint_bits));
      for (size_t i = 0; i < shards.size(); ++i) {
        write_bit_sequence(std::span(hint).subspan(i * words, words), layout_.hint_bits, packed);
        files[i].write(packed);
        hashes[i].update(packed);
      }
    }
    for (size_t i = 0; i < shards.size(); ++i) {
      ShardEntry& entry = table_[shards[i]];
      entry.hint = hashes[i].finish();
      files[i].commit(entry.hint);
    }
  }

 private:
  // The hint of columns first .. first + count - 1 of every shard.
  std::vector<uint32_t> compute(std::span<const uint32_t> shards, uint64_t first, uint64_t count) {
    const uint64_t columns = count * shards.size();
    const auto engine = engines_.make_engine(layout_.row_count, columns);
    // The processor has the same columns where a device makes the hint, to check it.
    std::unique_ptr<Engine> checker;
    std::optional<HintCheck> check;
    if (engines_.computes_on_device()) {
      checker = make_engine("cpu", layout_.row_count, columns, threads_.count());
      check.emplace(layout_.lwe->dimension, layout_.row_count, fill_from_system);
    }
    threads_.run([&](unsigned index) {
      for (size_t i = index; i < shards.size(); i += threads_.count()) {
        read_columns(shards[i], first, *engine, checker.get(), i * count, count);
      }
    });
    std::vector<uint32_t> hint(columns * layout_.lwe->dimension);
    engine->seal();
    compute_hint(
        public_matrix_, *engine, threads_, hint,
        [&](uint64_t rows) { progress_.advance(rows * columns); }, check ? &*check : nullptr);
    if (check) require_right(*check, *checker, engine->name(), hint);
    return hint;
  }

  void require_right(const HintCheck& check, Engine& checker, std::string_view maker,
                     std::span<const uint32_t> hint) {
    checker.seal();
    const std::string difference = check.difference(checker, hint, threads_);
    if (difference.empty()) return;
    throw DeviceLostError("the engine " + std::string(maker) + " computes wrong: " + difference +
                          ", with " + std::to_string(layout_.row_count) +
                          " rows; nothing is published");
  }

  // Reads columns first .. first + count - 1 of a shard into the engine, and into the one that
  // checks it if there is one, some at a time.
  void read_columns(uint32_t shard, uint64_t first, Engine& engine, Engine* checker, uint64_t to,
                    uint64_t count) {
    constexpr uint64_t kBytesAtOnce = 16 << 20;
    const auto path = directory_.shards() / DatabaseDirectory::matrix_name(table_[shard].matrix);
    const FileDescriptor file = open_for_reading(path);
    const uint64_t rows = layout_.row_count;
    const uint64_t step = std::clamp<uint64_t>(kBytesAtOnce / rows, 1, count);
    std::vector<uint8_t> bytes;
    for (uint64_t done = 0; done < count; done += step) {
      bytes.resize(std::min(step, count - done) * rows);
      read_exactly(file, (first + done) * rows, bytes, path);
      engine.set_columns(to + done, bytes);
      if (checker != nullptr) checker->set_columns(to + done, bytes);
    }
  }

  const DatabaseDirectory& directory_;
  DatabaseWriter& writer_;
  const Layout& layout_;
  const PublicMatrix public_matrix_;
  const EngineMaker& engines_;
  WorkerThreads& threads_;
  ShardTable& table_;
  Progress progress_;
};

}  // namespace

uint64_t columns_at_once(uint64_t row_count) {
  constexpr uint64_t kGrain = 8;
  const uint64_t columns = std::min(kColumnsMax, kMatrixBytesMax / row_count);
  return std::max(kGrain, columns / kGrain * kGrain);
}

void build_hints(const DatabaseDirectory& directory, DatabaseWriter& writer, const Layout& layout,
                 const MatrixSeed& seed, const std::vector<uint32_t>& shards,
                 const EngineMaker& engines, WorkerThreads& threads, ShardTable& table) {
  HintStage stage(directory, writer, layout, seed, engines, threads, table, shards.size());
  const size_t step = std::clamp<uint64_t>(
      columns_at_once(layout.row_count) / layout.record_bytes(), 1, kOpenFilesMax);
  for (size_t first = 0; first < shards.size(); first += step) {
    stage.build(std::span(shards).subspan(first, std::min(step, shards.size() - first)));
  }
}

}  // namespace blindfuse
