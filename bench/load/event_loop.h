// What one process waits for: sockets, and points in time. One thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>

#include "src/system/file.h"

namespace blindfuse::load {

using Clock = std::chrono::steady_clock;

class EventHandler {
 public:
  virtual ~EventHandler() = default;
  // Something may have changed: try to read and to write until neither gets on.
  virtual void on_ready() = 0;
};

class EventLoop {
 public:
  // Throws EngineTrouble when the system gives no descriptors.
  EventLoop();

  // Tells `handler`, which must outlive the loop, of every change until `fd` is closed.
  void watch(int fd, EventHandler& handler);

  void at(Clock::time_point when, std::function<void()> action);

  // Until stop().
  void run();
  void stop() { stopped_ = true; }

 private:
  void set_alarm();
  void run_timers();

  FileDescriptor epoll_;
  FileDescriptor alarm_;
  std::multimap<Clock::time_point, std::function<void()>> timers_;
  Clock::time_point alarm_at_ = Clock::time_point::max();
  bool stopped_ = false;
};

}  // namespace blindfuse::load
