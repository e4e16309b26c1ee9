#include "host/hint/hint.h"

#include <algorithm>
#include <memory>

#include "src/base/errors.h"

namespace blindfuse {
namespace {

// The panels of A for these rows, one after another.
void fill_panels(const PublicMatrix& public_matrix, RowRange rows, WorkerThreads& threads,
                 std::span<uint32_t> panels, HintCheck* check) {
  const uint64_t words = public_matrix.panel_words();
  threads.run([&](unsigned index) {
    for (uint64_t p = index; p < rows.size() / kPanelRows; p += threads.count()) {
      const auto panel = panels.subspan(p * words, words);
      public_matrix.fill_panel(rows.first / kPanelRows + p, panel);
      if (check != nullptr) check->add_panel(rows.first / kPanelRows + p, panel);
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

void compute_hint(const PublicMatrix& public_matrix, Engine& engine, WorkerThreads& threads,
                  std::span<uint32_t> hint, const std::function<void(uint64_t)>& on_rows,
                  HintCheck* check) {
  const uint64_t n = public_matrix.dimension();
  const uint64_t row_count = engine.row_count();
  const uint64_t columns = engine.column_count();
  invariant(hint.size() == n * columns, "n words of hint a column");
  invariant(row_count % kPanelRows == 0, "rows come in whole panels");
  constexpr uint64_t kRowsAtOnce = PanelProducts::kRowsAtOnce;
  const auto sums = engine.make_panel_products(n, std::min(kRowsAtOnce, row_count));
  for (uint64_t first = 0; first < row_count; first += kRowsAtOnce) {
    const RowRange rows{first, std::min(first + kRowsAtOnce, row_count)};
    const std::span<uint32_t> panels = sums->buffer();
    fill_panels(public_matrix, rows, threads, panels, check);
    // A's rows, as the n vectors that they are.
    sums->add({panels.data(), n, kPanelRows, public_matrix.panel_words()}, rows);
    on_rows(rows.size());
  }
  transpose(sums->finish(), n, columns, hint);
}

}  // namespace blindfuse
