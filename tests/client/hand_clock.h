// A monotonic clock that moves when a test says so, from any thread.
#pragma once

#include <atomic>
#include <chrono>

#include "client/deadline.h"

namespace blindfuse {

class HandClock {
 public:
  void advance(std::chrono::milliseconds by) { now_ms_ += by.count(); }
  Deadline::Clock clock() {
    return [this] { return Deadline::TimePoint(std::chrono::milliseconds(now_ms_.load())); };
  }

 private:
  std::atomic<int64_t> now_ms_ = 1'000'000;
};

}  // namespace blindfuse
