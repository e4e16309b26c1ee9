// The hint M = A * D of some columns. An engine computes it, and A is never in memory as a whole.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "host/hint/hint_check.h"
#include "host/system/worker_threads.h"
#include "src/engine/engine.h"
#include "src/protocol/public_matrix.h"

namespace blindfuse {

// Computes M[k][c] for all k < n and all columns c of the engine's matrix (R rows), into hint[c * n
// + k], modulo 2^32, not rounded. Holds 3072 columns of A, or twice as many, and the n x C
// products. on_rows is called with the rows that the engine has been given. check: gets the panels
// of A; nullptr: no check.
void compute_hint(const PublicMatrix& public_matrix, Engine& engine, WorkerThreads& threads,
                  std::span<uint32_t> hint, const std::function<void(uint64_t)>& on_rows,
                  HintCheck* check = nullptr);

}  // namespace blindfuse
