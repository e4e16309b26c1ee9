// Freivalds' check of a hint M = A * D (R. Freivalds, Probabilistic machines can use less running
// time, IFIP 1977): for random rows r, (r M) = (r A) D modulo 2^32. It costs one product with a few
// vectors instead of one with n.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "host/system/worker_threads.h"
#include "src/engine/engine.h"
#include "src/protocol/public_matrix.h"
#include "src/system/random.h"

namespace blindfuse {

class HintCheck {
 public:
  // Random rows that a hint is checked with. A row misses an error in a column with probability
  // 2^(t - 32), where 2^t is the largest power of two that divides all of its n differences: 1/2 at
  // most, as when words are off by 2^31. Four rows miss that with 1/16. The rows are those of all
  // columns, so that the same difference in every column is missed everywhere or nowhere.
  static constexpr size_t kRows = 4;

  // For n = dimension and R rows of the matrix.
  HintCheck(uint32_t dimension, uint64_t row_count, const RandomSource& random);

  // Panel j of A (PublicMatrix::fill_panel): its share of r A. Different panels by any number of
  // threads at the same time; each panel once.
  void add_panel(uint64_t j, std::span<const uint32_t> panel);

  // Once all panels are added: "" when hint[c * n + k] is M for the columns in `engine`, which is
  // sealed, and another than the one that made the hint; otherwise which columns are wrong, for
  // people. Throws what Engine::multiply throws.
  std::string difference(Engine& engine, std::span<const uint32_t> hint,
                         WorkerThreads& threads) const;

 private:
  const uint32_t dimension_;
  const uint64_t row_count_;
  std::vector<uint32_t> rows_;      // kRows times n: r
  std::vector<uint32_t> products_;  // kRows times R: r A
};

}  // namespace blindfuse
