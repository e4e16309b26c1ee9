// The option that limits the time of a GPU's calls, and the watchdog for it.
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

  // Watches these calls and, if there are epochs, their batches, until it is destroyed. If one
  // hangs, the process ends with kExitFailed, and the log says why.
  EngineWatchdog watch(std::shared_ptr<const DeviceCalls> calls,
                       const ServedEpochs* epochs = nullptr) const;

 private:
  uint64_t seconds_ = 30;
};

}  // namespace blindfuse
