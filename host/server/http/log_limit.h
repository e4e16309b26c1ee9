// Limits log messages that clients can cause as often as they like.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

namespace blindfuse::http {

// Any thread.
class LogLimit {
 public:
  using Clock = std::chrono::steady_clock;

  explicit LogLimit(Clock::duration interval = std::chrono::minutes(1)) : interval_(interval) {}

  // Called for each occurrence of an event. Returns the number of occurrences since the last that
  // was logged, this one included, or nothing if it is not to be logged.
  std::optional<uint64_t> count(Clock::time_point now = Clock::now()) {
    const std::lock_guard lock(mutex_);
    ++count_;
    if (logged_ && now - *logged_ < interval_) return std::nullopt;
    logged_ = now;
    return std::exchange(count_, 0);
  }

 private:
  const Clock::duration interval_;
  std::mutex mutex_;
  uint64_t count_ = 0;
  std::optional<Clock::time_point> logged_;
};

}  // namespace blindfuse::http
