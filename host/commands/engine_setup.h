// The engines of a command: how long a GPU's calls may take, how a command that computes on one
// ends, and the check of a loaded epoch.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "host/database/loaded_database.h"
#include "host/engines/checked_engines.h"
#include "host/server/device_end.h"
#include "src/base/errors.h"

namespace CLI {
class App;
}

namespace blindfuse {

class DeviceLimit {
 public:
  void add_to(CLI::App& command);
  std::chrono::seconds time() const { return std::chrono::seconds(seconds_); }

 private:
  uint64_t seconds_ = 30;
};

// Makes the engines that are asked for. Logs its warnings. If a call of the device hangs, `end`
// ends the process. It outlives the engines.
CheckedEngines make_checked_engines(EngineRequest request, const DeviceLimit& limit,
                                    DeviceEnd& end);

// Runs `work`, and ends the process if it throws DeviceLostError. The memory that its engines have
// on the device is not released.
template <typename Work>
auto end_if_device_lost(DeviceEnd& end, const Work& work) {
  try {
    return work();
  } catch (const DeviceLostError& error) {
    end.end(error.what());
  }
}

// Checks a loaded epoch before it answers: a GPU must multiply its matrix as the host does.
// Completes the epoch's canary, and has every kernel multiply the matrix with it
// (Engine::check_kernels). Does nothing for an engine on the CPU. batch_max: that of the pipeline
// that will answer. thread_count: for packing; 0: one a processor. Throws the errors of
// complete_canary() and Engine::check_kernels().
void check_epoch(LoadedDatabase& database, size_t batch_max, unsigned thread_count);

}  // namespace blindfuse
