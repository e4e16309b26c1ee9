#include "host/build/hint.h"

#include <algorithm>
#include <vector>

#include "host/engine_factory.h"
#include "src/errors.h"

namespace blindfuse {
namespace {

// A block of the matrix's rows: enough to amortize the sums across lanes, and A's words for it stay
// in the last-level cache or near it.
constexpr uint64_t kRowsAtOnce = Matrix::kBlockRows;

// The panels of A for these rows, one after another.
void fill_panels(const PublicMatrix& public_matrix, RowRange rows, WorkerThreads& threads,
                 std::span<uint32_t> panels) {
  const uint64_t words = public_matrix.panel_words();
  threads.run([&](unsigned index) {
    for (uint64_t p = index; p < rows.size() / kPanelRows; p += threads.count()) {
      public_matrix.fill_panel(rows.first / kPanelRows + p, panels.subspan(p * words, words));
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

void compute_hint(const PublicMatrix& public_matrix, const Matrix& columns,
                  const std::string& engine_name, WorkerThreads& threads, std::span<uint32_t> hint,
                  const std::function<void(uint64_t)>& on_rows) {
  const uint64_t n = public_matrix.dimension();
  invariant(hint.size() == n * columns.column_count(), "n words of hint a column");
  invariant(columns.row_count() % kPanelRows == 0, "rows come in whole panels");
  const std::unique_ptr<Engine> engine = make_engine(engine_name, columns, threads.count());
  std::vector<uint32_t> panels(std::min(kRowsAtOnce, columns.row_count()) * n);
  std::vector<uint32_t> products(n * columns.column_count());
  for (uint64_t first = 0; first < columns.row_count(); first += kRowsAtOnce) {
    const RowRange rows{first, std::min(first + kRowsAtOnce, columns.row_count())};
    fill_panels(public_matrix, rows, threads, panels);
    // A's rows, as the n vectors that they are.
    engine->multiply({panels.data(), n, kPanelRows, public_matrix.panel_words()}, rows,
                     {products.data(), n, columns.column_count()});
    on_rows(rows.size());
  }
  transpose(products, n, columns.column_count(), hint);
}

}  // namespace blindfuse
