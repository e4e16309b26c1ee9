#include "host/hint/hint_check.h"

#include <algorithm>

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

}  // namespace blindfuse
