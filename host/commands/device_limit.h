// The option that limits the time of a GPU's calls, and how a command that computes on one ends.
#pragma once

#include <chrono>
#include <cstdint>

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

}  // namespace blindfuse
