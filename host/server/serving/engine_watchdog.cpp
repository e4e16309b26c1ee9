#include "host/server/serving/engine_watchdog.h"

#include <algorithm>
#include <utility>

#include "src/program/log.h"
#include "src/system/threads.h"

namespace blindfuse {
namespace {

int64_t whole_seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time).count();
}

}  // namespace

EngineWatchdog::EngineWatchdog(const ServedEpochs& epochs, WatchdogOptions options,
                               std::function<void()> on_look, std::function<void()> on_hang)
    : epochs_(epochs),
      options_(std::move(options)),
      on_look_(std::move(on_look)),
      on_hang_(std::move(on_hang)),
      thread_(start_thread([this] { watch(); })) {}

EngineWatchdog::~EngineWatchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

std::chrono::steady_clock::duration EngineWatchdog::longest_batch() const {
  const auto now = options_.clock();
  std::chrono::steady_clock::duration longest{0};
  for (const EpochInMemory& held : epochs_.in_memory()) {
    if (!held.epoch) continue;
    if (const auto since = held.epoch->scheduler().busy_since()) {
      longest = std::max(longest, now - *since);
    }
  }
  return longest;
}

void EngineWatchdog::watch() {
  bool has_warned = false;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    const auto busy = longest_batch();
    if (options_.judges_batches && busy >= options_.give_up_after) {
      log_error(
          "the engine has been busy with one batch for {} s: the device hangs, and the server ends; "
          "nvidia-smi and the kernel's log (journalctl -k, \"Xid\") may say more",
          whole_seconds(busy));
      return on_hang_();
    }
    const bool is_late = options_.judges_batches && busy >= options_.warn_after;
    if (is_late && !has_warned) {
      log_warning("the engine has been busy with one batch for {} s; the server ends after {} s",
                  whole_seconds(busy), whole_seconds(options_.give_up_after));
    }
    has_warned = is_late;
    on_look_();
    lock.lock();
    changed_.wait_for(lock, options_.look_every, [this] { return stopping_; });
  }
}

}  // namespace blindfuse
