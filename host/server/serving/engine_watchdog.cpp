#include "host/server/serving/engine_watchdog.h"

#include <utility>

#include "src/program/log.h"
#include "src/system/threads.h"

namespace blindfuse {
namespace {

// For a log that has no reader, or one that hangs as well.
constexpr std::chrono::seconds kLogPatience{1};

std::string in_seconds(std::chrono::steady_clock::duration time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
}

std::string named(const std::string& what, std::chrono::steady_clock::duration time) {
  return what + " for " + in_seconds(time);
}

}  // namespace

EngineWatchdog::EngineWatchdog(std::shared_ptr<const DeviceCalls> calls, const ServedEpochs* epochs,
                               WatchdogOptions options, std::function<void()> on_look,
                               std::function<void()> on_hang)
    : calls_(std::move(calls)),
      epochs_(epochs),
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

EngineWatchdog::Busy EngineWatchdog::longest() const {
  const auto now = options_.clock();
  Busy longest;
  std::string also;
  if (const auto call = calls_->latest()) {
    longest = {named(call->what, now - call->since), now - call->since, now - call->counts_from()};
    also = ", and with " + longest.what;
  }
  if (epochs_ == nullptr || !options_.judges_batches) return longest;
  for (const EpochInMemory& held : epochs_->in_memory()) {
    if (!held.epoch) continue;
    const auto since = held.epoch->scheduler().busy_since();
    if (since && now - *since > longest.counted) {
      const auto time = now - *since;
      longest = {named("one batch", time) + also, time, time};
    }
  }
  return longest;
}

void EngineWatchdog::watch() {
  bool has_warned = false;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    const Busy busy = longest();
    const std::string said = "the engine has been busy with " + busy.what;
    if (busy.counted >= options_.give_up_after) {
      log_within(kLogPatience, LogLevel::kError,
                 said +
                     ": the device hangs, and the program ends; nvidia-smi and the kernel's log "
                     "(journalctl -k, \"Xid\") may say more");
      return on_hang_();
    }
    const bool is_late = busy.counted >= options_.warn_after;
    if (is_late && !has_warned) {
      log_within(kLogPatience, LogLevel::kWarning,
                 said + "; the program ends after " +
                     in_seconds(options_.give_up_after + busy.time - busy.counted));
    }
    has_warned = is_late;
    on_look_();
    lock.lock();
    changed_.wait_for(lock, options_.look_every, [this] { return stopping_; });
  }
}

}  // namespace blindfuse
