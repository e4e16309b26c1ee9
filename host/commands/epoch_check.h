// What of a loaded epoch is checked before it answers: that a GPU multiplies its matrix as the host
// does.
#pragma once

#include <cstddef>

#include "host/database/loaded_database.h"

namespace blindfuse {

// Completes the epoch's canary, and has every kernel multiply the matrix with it
// (Engine::check_kernels). Nothing where the engine's kernels are not checked. batch_max: of what
// will answer. thread_count: of packing; 0: one a processor. Throws what complete_canary() and
// Engine::check_kernels() throw.
void check_epoch(LoadedDatabase& database, size_t batch_max, unsigned thread_count);

}  // namespace blindfuse
