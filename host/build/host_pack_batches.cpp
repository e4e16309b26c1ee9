#include <algorithm>
#include <array>
#include <vector>

#include "host/build/column_reader.h"
#include "host/build/pack_batches.h"
#include "host/packing/hint_polynomials.h"
#include "host/packing/packing_table_builder.h"

namespace blindfuse {
namespace {

using ring::kDimension;

class HostPackBatches final : public PackBatches {
 public:
  HostPackBatches(const PackSource& source, WorkerThreads& threads)
      : source_(source),
        threads_(threads),
        hint_(source.polynomials, source.layout.row_count),
        builder_(source.polynomials) {}

  size_t packs_max() const override { return std::min<size_t>(threads_.count(), kPacksAtOnceMax); }

  void make(std::span<const uint32_t> packs, const OnColumns& on_columns,
            const Write& write) override {
    const std::vector<uint32_t> hints = hints_of(packs, on_columns);
    threads_.run_each(packs.size(), [&](unsigned, size_t i) {
      constexpr size_t kWords = kDimension * kDimension;
      std::vector<uint32_t> table(kTableWords);
      std::array<uint32_t, kDimension> mask;
      builder_.build(std::span(hints).subspan(i * kWords, kWords), MutablePackingTable(table),
                     mask);
      write(i, MutablePackingTable(table), mask);
    });
  }

 private:
  // The hint polynomials of the packs' columns, one after another; zeros for columns that there are
  // not. All threads work at one pack when there is but one.
  std::vector<uint32_t> hints_of(std::span<const uint32_t> packs, const OnColumns& on_columns) {
    std::vector<uint32_t> hints(packs.size() * kDimension * kDimension);
    std::vector<ColumnReader> readers;
    for (unsigned i = 0; i < threads_.count(); ++i) readers.emplace_back(source_);
    std::vector<std::vector<uint8_t>> columns(threads_.count());
    threads_.run_each(packs.size() * kDimension, [&](unsigned thread, size_t i) {
      const uint32_t pack = packs[i / kDimension];
      if (i % kDimension >= source_.column_count(pack)) return;
      std::vector<uint8_t>& column = columns[thread];
      column.resize(source_.layout.row_count);
      readers[thread].read(PackSource::first_column(pack) + i % kDimension, column);
      hint_.compute({reinterpret_cast<const int8_t*>(column.data()), column.size()},
                    ring::MutablePolynomial(hints.data() + i * kDimension, kDimension));
      on_columns(1);
    });
    return hints;
  }

  const PackSource source_;
  WorkerThreads& threads_;
  const HintPolynomials hint_;
  const PackingTableBuilder builder_;
};

}  // namespace

std::unique_ptr<PackBatches> make_host_pack_batches(const PackSource& source,
                                                    WorkerThreads& threads) {
  return std::make_unique<HostPackBatches>(source, threads);
}

}  // namespace blindfuse
