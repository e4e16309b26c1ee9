// The option by which a command bounds the time of a GPU, and the watch that it keeps.
#pragma once

#include <cstdint>
#include <memory>

#include "host/server/serving/engine_watchdog.h"

namespace CLI {
class App;
}

namespace blindfuse {

class DeviceLimit {
 public:
  void add_to(CLI::App& command);

  // Watches these calls, and where there are epochs their batches, as long as it lives. Where one
  // hangs, the process ends with kExitFailed, and the log says why.
  EngineWatchdog watch(std::shared_ptr<const DeviceCalls> calls,
                       const ServedEpochs* epochs = nullptr) const;

 private:
  uint64_t seconds_ = 30;
};

}  // namespace blindfuse
