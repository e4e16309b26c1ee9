// Detects an engine that does not return: a kernel on a GPU that never ends, or a driver.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "host/server/serving/serving_epoch.h"
#include "host/system/device_calls.h"

namespace blindfuse {

struct WatchdogOptions {
  using Clock = std::function<std::chrono::steady_clock::time_point()>;

  // false: batches may take any time, as on a processor.
  bool judges_batches = true;
  std::chrono::milliseconds warn_after{10'000};
  std::chrono::milliseconds give_up_after{30'000};
  std::chrono::milliseconds look_every{500};
  Clock clock = std::chrono::steady_clock::now;
};

class EngineWatchdog {
 public:
  // Watches the device's calls, and the schedulers of all epochs in memory. epochs: null if none is
  // served. on_look: called after every look that found nothing that hangs. on_hang: called once,
  // after a batch, or a call beyond the time that it is allowed, has taken give_up_after. After
  // that, the watchdog looks at nothing more. Both are called on the watchdog's thread, with no
  // lock held. The log names the part that hangs, before on_hang, unless the log itself hangs.
  // `epochs` outlives this. Throws ResourceError if no thread can be started.
  EngineWatchdog(std::shared_ptr<const DeviceCalls> calls, const ServedEpochs* epochs,
                 WatchdogOptions options, std::function<void()> on_look,
                 std::function<void()> on_hang);
  ~EngineWatchdog();
  EngineWatchdog(const EngineWatchdog&) = delete;
  EngineWatchdog& operator=(const EngineWatchdog&) = delete;

 private:
  struct Busy {
    std::string what;  // for people, with the time
    std::chrono::steady_clock::duration time{0};
    std::chrono::steady_clock::duration counted{0};  // without what it is allowed in addition
  };

  void watch();
  // The batch or call that has taken longest. If it is a batch, it also names the call, for which
  // the batch may wait. Nothing if all are idle.
  Busy longest() const;

  const std::shared_ptr<const DeviceCalls> calls_;
  const ServedEpochs* const epochs_;
  const WatchdogOptions options_;
  const std::function<void()> on_look_;
  const std::function<void()> on_hang_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace blindfuse
