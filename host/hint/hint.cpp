#include "host/hint/hint.h"

#include <algorithm>
#include <memory>

#include "src/base/errors.h"

namespace blindfuse {

HintCheck::HintCheck(uint32_t dimension, uint64_t row_count, const RandomSource& random)
    : dimension_(dimension),
      row_count_(row_count),
      rows_(kRows * dimension),
      products_(kRows * row_count) {
  invariant(row_count % kPanelRows == 0, "rows come in whole panels");
  random({reinterpret_cast<uint8_t*>(rows_.data()), rows_.size() * sizeof(uint32_t)});
}

void HintCheck::add_panel(uint64_t j, std::span<const uint32_t> panel) {
  for (size_t i = 0; i < kRows; ++i) {
    const uint32_t* const row = rows_.data() + i * dimension_;
    uint32_t* const product = products_.data() + i * row_count_ + j * kPanelRows;
    for (size_t k = 0; k < dimension_; ++k) {
      for (size_t c = 0; c < kPanelRows; ++c) product[c] += row[k] * panel[k * kPanelRows + c];
    }
  }
}

std::string HintCheck::difference(Engine& engine, std::span<const uint32_t> hint,
                                  WorkerThreads& threads) const {
  const uint64_t columns = engine.column_count();
  invariant(engine.row_count() == row_count_ && hint.size() == columns * dimension_,
            "the hint of the engine's columns");
  std::vector<uint32_t> expected(kRows * columns);
  engine.multiply({products_.data(), kRows, row_count_}, {0, row_count_},
                  {expected.data(), kRows, columns});
  std::vector<uint8_t> is_wrong(columns);
  threads.run([&](unsigned index) {
    const Share share = share_of(columns, 1, index, threads.count());
    for (uint64_t c = share.first; c < share.last; ++c) {
      const uint32_t* const words = hint.data() + c * dimension_;
      for (size_t i = 0; i < kRows; ++i) {
        uint32_t sum = 0;
        for (size_t k = 0; k < dimension_; ++k) sum += rows_[i * dimension_ + k] * words[k];
        if (sum != expected[i * columns + c]) is_wrong[c] = 1;
      }
    }
  });
  const auto wrong = std::ranges::count(is_wrong, 1);
  if (wrong == 0) return "";
  const auto first = std::ranges::find(is_wrong, 1) - is_wrong.begin();
  return std::to_string(wrong) + " of " + std::to_string(columns) +
         " columns of the hint are wrong, the first number " + std::to_string(first);
}

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

// Copies products[k * columns + c] to hint[c * n + k], in squares that stay in cache.
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
    // The rows of A are the n vectors.
    sums->add({panels.data(), n, kPanelRows, public_matrix.panel_words()}, rows);
    on_rows(rows.size());
  }
  transpose(sums->finish(), n, columns, hint);
}

}  // namespace blindfuse
