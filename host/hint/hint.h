// The hint M = A * D of some columns. An engine computes it, and A is never in memory as a whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "host/system/worker_threads.h"
#include "src/engine/engine.h"
#include "src/protocol/public_matrix.h"
#include "src/system/random.h"

namespace blindfuse {

// Freivalds' check of a hint M = A * D (R. Freivalds, Probabilistic machines can use less running
// time, IFIP 1977): for random rows r, (r M) = (r A) D modulo 2^32. It costs one product with a few
// vectors instead of one with n.
class HintCheck {
 public:
  // The number of random rows with which a hint is checked. A row misses an error in a column with
  // probability 2^(t - 32), where 2^t is the largest power of two that divides all of its n
  // differences. This is at most 1/2, for example if words are off by 2^31. Four rows miss that
  // with probability 1/16. All columns are checked with the same rows, so the same difference in
  // every column is missed everywhere or nowhere.
  static constexpr size_t kRows = 4;

  // Checks hints with n = dimension, of a matrix of R rows.
  HintCheck(uint32_t dimension, uint64_t row_count, const RandomSource& random);

  // Adds the share of panel j of A (PublicMatrix::fill_panel) to r A. Any number of threads may add
  // different panels at the same time. Each panel is added once.
  void add_panel(uint64_t j, std::span<const uint32_t> panel);

  // Called after all panels are added. Returns "" if hint[c * n + k] is M for the columns in
  // `engine`; otherwise says which columns are wrong, for people. `engine` is sealed, and is not
  // the engine that made the hint. Throws the errors of Engine::multiply.
  std::string difference(Engine& engine, std::span<const uint32_t> hint,
                         WorkerThreads& threads) const;

 private:
  const uint32_t dimension_;
  const uint64_t row_count_;
  std::vector<uint32_t> rows_;      // kRows times n: r
  std::vector<uint32_t> products_;  // kRows times R: r A
};

// Computes M[k][c] for all k < n and all columns c of the engine's matrix (R rows), into hint[c * n
// + k], modulo 2^32, not rounded. Holds 3072 columns of A, or twice as many, and the n x C
// products. on_rows is called with the rows that the engine has been given. check: gets the panels
// of A; nullptr: no check.
void compute_hint(const PublicMatrix& public_matrix, Engine& engine, WorkerThreads& threads,
                  std::span<uint32_t> hint, const std::function<void(uint64_t)>& on_rows,
                  HintCheck* check = nullptr);

}  // namespace blindfuse
