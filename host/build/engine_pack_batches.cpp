#include <algorithm>
#include <array>
#include <mutex>
#include <utility>
#include <vector>

#include "host/build/column_reader.h"
#include "host/build/pack_batches.h"

namespace blindfuse {
namespace {

using ring::kDimension;

constexpr uint64_t kBatchBytesMax = uint64_t{4} << 30;

class EnginePackBatches final : public PackBatches {
 public:
  EnginePackBatches(const PackSource& source, const EngineMaker& make_engine,
                    std::vector<uint32_t> key_masks, WorkerThreads& threads)
      : source_(source),
        make_engine_(make_engine),
        threads_(threads),
        key_masks_(std::move(key_masks)),
        blocks_(source.layout.row_count) {
    threads_.run_each(blocks_.size() / kDimension, [&](unsigned, size_t j) {
      source_.polynomials.fill_block(
          static_cast<uint32_t>(j),
          ring::MutablePolynomial(blocks_.data() + j * kDimension, kDimension));
    });
  }

  size_t packs_max() const override {
    const uint64_t pack_bytes = uint64_t{kDimension} * source_.layout.row_count;
    return std::clamp<uint64_t>(kBatchBytesMax / pack_bytes, 1, kPacksAtOnceMax);
  }

  void make(std::span<const uint32_t> packs, const OnColumns& on_columns,
            const Write& write) override {
    const std::unique_ptr<Engine> engine = engine_of(packs, on_columns);
    const std::unique_ptr<PackMaker> maker = engine->make_pack_maker(blocks_, key_masks_);
    std::mutex mutex;  // it has one caller at a time; what is made is written beside it
    threads_.run_each(packs.size(), [&](unsigned, size_t i) {
      std::vector<uint32_t> table(kTableWords);
      std::array<uint32_t, kDimension> mask;
      {
        const std::lock_guard lock(mutex);
        maker->make(static_cast<uint32_t>(i), MutablePackingTable(table), mask);
      }
      write(i, MutablePackingTable(table), mask);
    });
  }

 private:
  // Columns of the matrix that lie side by side in the engine, too.
  struct Columns {
    uint64_t first;
    uint64_t count;
    uint64_t to;
  };

  // With all columns of the packs, each of which is full but for the last.
  std::unique_ptr<Engine> engine_of(std::span<const uint32_t> packs, const OnColumns& on_columns) {
    const uint64_t rows = source_.layout.row_count;
    constexpr uint64_t kBytesAtOnce = 16 << 20;  // that a thread reads
    const uint64_t step = std::max<uint64_t>(1, kBytesAtOnce / rows);
    std::vector<Columns> pieces;
    uint64_t total = 0;
    for (const uint32_t pack : packs) {
      const uint64_t count = source_.column_count(pack);
      for (uint64_t done = 0; done < count; done += step) {
        pieces.push_back(
            {PackSource::first_column(pack) + done, std::min(step, count - done), total + done});
      }
      total += count;
    }
    std::unique_ptr<Engine> engine = make_engine_(rows, total);
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
      engine->set_columns(piece.to, bytes);
      on_columns(piece.count);
    });
    engine->seal();
    return engine;
  }

  const PackSource source_;
  const EngineMaker make_engine_;
  WorkerThreads& threads_;
  const std::vector<uint32_t> key_masks_;
  std::vector<uint32_t> blocks_;
};

}  // namespace

std::unique_ptr<PackBatches> make_engine_pack_batches(const PackSource& source,
                                                      const EngineMaker& make_engine,
                                                      WorkerThreads& threads) {
  std::vector<uint32_t> key_masks = source.polynomials.key_masks();
  // An engine without a matrix tells whether it makes packs.
  if (!make_engine(0, 0)->make_pack_maker({}, key_masks)) return nullptr;
  return std::make_unique<EnginePackBatches>(source, make_engine, std::move(key_masks), threads);
}

}  // namespace blindfuse
