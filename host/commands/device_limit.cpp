#include "host/commands/device_limit.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <utility>

#include "host/server/ready_file.h"

namespace blindfuse {

void DeviceLimit::add_to(CLI::App& command) {
  constexpr uint64_t kDaySeconds = 86'400;
  command
      .add_option("--gpu-batch-seconds-max", seconds_,
                  "How long a GPU may take for a batch, or another call. After this time it counts "
                  "as hung, and the program ends with status 1; after a third of it, there is a "
                  "warning")
      ->check(CLI::Range(uint64_t{1}, kDaySeconds))
      ->capture_default_str();
}

EngineWatchdog DeviceLimit::watch(std::shared_ptr<const DeviceCalls> calls,
                                  const ServedEpochs* epochs) const {
  WatchdogOptions options;
  options.give_up_after = std::chrono::seconds(seconds_);
  options.warn_after = options.give_up_after / 3;
  return EngineWatchdog(
      std::move(calls), epochs, std::move(options), [] {}, [] { ReadyFile::end_process({}); });
}

}  // namespace blindfuse
