#include "host/build/hint.h"

#include <algorithm>
#include <vector>

#include "host/engine_factory.h"
#include "src/errors.h"

namespace blindfuse {
namespace {

// A panel's 64 rows are too few for a product: eight panels amortize the sums across lanes, and
// still leave A's block in the last-level cache.
constexpr uint64_t kPanelsAtOnce = 8;

// Rows `rows` of A's transpose as n vectors of rows.size() words, a panel at a time on each thread.
void fill_block(const PublicMatrix& public_matrix, RowRange rows, WorkerThreads& threads,
                std::span<uint32_t> block) {
  const uint64_t panels = rows.size() / kPanelRows;
  threads.run([&](unsigned index) {
    std::vector<uint32_t> panel;
    for (uint64_t p = index; p < panels; p += threads.count()) {
      panel.resize(public_matrix.panel_words());
      public_matrix.fill_panel(rows.first / kPanelRows + p, panel);
      for (uint64_t k = 0; k < public_matrix.dimension(); ++k) {
        std::copy_n(panel.data() + k * kPanelRows, kPanelRows,
                    block.data() + k * rows.size() + p * kPanelRows);
      }
    }
  });
}

// From products[k * columns + c] to hint[c * n + k], in squares that stay in cache.
void transpose(std::span<const uint32_t> products, uint64_t dimension, uint64_t columns,
               std::span<uint32_t> hint) {
  constexpr uint64_t kSquare = 32;
  for (uint64_t c0 = 0; c0 < columns; c0 += kSquare) {
    for (uint64_t k0 = 0; k0 < dimension; k0 += kSquare) {
      for (uint64_t c = c0; c < std::min(columns, c0 + kSquare); ++c) {
        for (uint64_t k = k0; k < std::min(dimension, k0 + kSquare); ++k) {
          hint[c * dimension + k] = products[k * columns + c];
        }
      }
    }
  }
}

}  // namespace

void compute_hint(const PublicMatrix& public_matrix, MatrixView columns,
                  const std::string& engine_name, WorkerThreads& threads, std::span<uint32_t> hint,
                  const std::function<void(uint64_t)>& on_rows) {
  const uint64_t n = public_matrix.dimension();
  invariant(hint.size() == n * columns.column_count, "n words of hint a column");
  invariant(columns.row_count % kPanelRows == 0, "rows come in whole panels");
  const std::unique_ptr<Engine> engine = make_engine(engine_name, columns, threads.count());
  std::vector<uint32_t> block(n * kPanelsAtOnce * kPanelRows);
  std::vector<uint32_t> products(n * columns.column_count);
  for (uint64_t first = 0; first < columns.row_count; first += kPanelsAtOnce * kPanelRows) {
    const RowRange rows{first, std::min(first + kPanelsAtOnce * kPanelRows, columns.row_count)};
    fill_block(public_matrix, rows, threads, block);
    engine->multiply({block.data(), n, rows.size()}, rows,
                     {products.data(), n, columns.column_count});
    on_rows(rows.size());
  }
  transpose(products, n, columns.column_count, hint);
}

}  // namespace blindfuse
