// The check of a loaded epoch before it answers: a GPU must multiply its matrix as the host does.
#pragma once

#include <cstddef>

#include "host/database/loaded_database.h"

namespace blindfuse {

// Completes the epoch's canary, and has every kernel multiply the matrix with it
// (Engine::check_kernels). Does nothing for an engine on the CPU. batch_max: that of the pipeline
// that will answer. thread_count: for packing; 0: one a processor. Throws the errors of
// complete_canary() and Engine::check_kernels().
void check_epoch(LoadedDatabase& database, size_t batch_max, unsigned thread_count);

}  // namespace blindfuse
