// Watches for an engine that does not come back from a batch: a kernel on a GPU that never ends.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "host/server/serving/serving_epoch.h"

namespace blindfuse {

struct WatchdogOptions {
  using Clock = std::function<std::chrono::steady_clock::time_point()>;

  // false: batches may take as long as they take, as on a processor.
  bool judges_batches = true;
  std::chrono::milliseconds warn_after{10'000};
  std::chrono::milliseconds give_up_after{30'000};
  std::chrono::milliseconds look_every{500};
  Clock clock = std::chrono::steady_clock::now;
};

class EngineWatchdog {
 public:
  // Looks at the schedulers of all epochs in memory. on_look: called after every look that found no
  // engine that hangs. on_hang: called once, after one of them has been busy with a batch for
  // give_up_after; then nothing more is looked at. Both on the watchdog's thread, with no lock held.
  // `epochs` outlives it. Throws ResourceError when no thread can be started.
  EngineWatchdog(const ServedEpochs& epochs, WatchdogOptions options, std::function<void()> on_look,
                 std::function<void()> on_hang);
  ~EngineWatchdog();
  EngineWatchdog(const EngineWatchdog&) = delete;
  EngineWatchdog& operator=(const EngineWatchdog&) = delete;

 private:
  void watch();
  // How long the engine has been busy that has been so for longest; 0 where all are idle.
  std::chrono::steady_clock::duration longest_batch() const;

  const ServedEpochs& epochs_;
  const WatchdogOptions options_;
  const std::function<void()> on_look_;
  const std::function<void()> on_hang_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace blindfuse
