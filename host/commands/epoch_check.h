// What of a loaded epoch is checked before it answers: that a GPU multiplies its matrix as the host
// does.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>

#include "host/database/loaded_database.h"

namespace blindfuse {

struct EpochCheckOptions {
  size_t batch_max = 32;      // of what will answer
  unsigned thread_count = 0;  // of packing; 0: one a processor
  std::chrono::milliseconds limit{30'000};
  std::filesystem::path ready_file = {};  // to remove when the process ends here; empty: none
};

// Completes the epoch's canary, and has every kernel multiply the matrix with it
// (Engine::check_kernels). Nothing where the engine's kernels are not checked. Throws what
// complete_canary() and Engine::check_kernels() throw. A device that has not ended within `limit`
// hangs: the process ends with kExitFailed, and the log says why.
void check_epoch(LoadedDatabase& database, const EpochCheckOptions& options);

}  // namespace blindfuse
