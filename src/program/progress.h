// A progress line on a terminal, for work that takes longer than a second.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace blindfuse {

// Shows the current work, its progress, its rate and the time left, on standard error. Shows
// nothing if that is not a terminal, and nothing in the first second. The line is cleared at the
// end. Any thread may call advance().
class Progress {
 public:
  enum class Unit { kBytes, kItems };

  // total 0: not known.
  Progress(std::string what, uint64_t total, Unit unit);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(uint64_t amount);
  void set_done(uint64_t done);

 private:
  void show_when_due();
  void show(std::chrono::steady_clock::time_point now);

  const std::string what_;
  const uint64_t total_;
  const Unit unit_;
  const bool enabled_;
  const std::chrono::steady_clock::time_point start_;
  std::atomic<uint64_t> done_ = 0;
  std::atomic<int64_t> next_show_ns_;
  std::mutex mutex_;
  bool shown_ = false;
};

}  // namespace blindfuse
