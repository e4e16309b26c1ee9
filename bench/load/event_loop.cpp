#include "bench/load/event_loop.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "src/base/errors.h"

namespace blindfuse::load {
namespace {

[[noreturn]] void fail(const char* what) {
  throw EngineTrouble(std::string(what) + ": " + std::strerror(errno));
}

}  // namespace

EventLoop::EventLoop()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      alarm_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
  if (!epoll_.is_open() || !alarm_.is_open()) fail("cannot wait for events");
  epoll_event event{};
  event.events = EPOLLIN;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, alarm_.get(), &event) != 0) fail("epoll_ctl");
}

void EventLoop::watch(int fd, EventHandler& handler) {
  epoll_event event{};
  // By changes, not by state: nothing has to be taken back when a handler has nothing to write.
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = &handler;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) fail("cannot wait for a socket");
}

void EventLoop::at(Clock::time_point when, std::function<void()> action) {
  timers_.emplace(when, std::move(action));
}

void EventLoop::run() {
  std::array<epoll_event, 256> events;
  while (!stopped_) {
    run_timers();
    if (stopped_) return;
    set_alarm();
    const int count = epoll_wait(epoll_.get(), events.data(), events.size(), -1);
    if (count < 0 && errno != EINTR) fail("epoll_wait");
    for (int i = 0; i < count && !stopped_; ++i) {
      if (auto* handler = static_cast<EventHandler*>(events[static_cast<size_t>(i)].data.ptr)) {
        handler->on_ready();
      } else {
        uint64_t expirations = 0;
        (void)!read(alarm_.get(), &expirations, sizeof expirations);
        alarm_at_ = Clock::time_point::max();
      }
    }
  }
}

void EventLoop::set_alarm() {
  if (timers_.empty() || timers_.begin()->first == alarm_at_) return;
  alarm_at_ = timers_.begin()->first;
  // A time that has passed rings at once; zero would turn the alarm off.
  const auto since_boot =
      std::max<int64_t>(std::chrono::nanoseconds(alarm_at_.time_since_epoch()).count(), 1);
  itimerspec spec{};
  spec.it_value.tv_sec = since_boot / 1'000'000'000;
  spec.it_value.tv_nsec = since_boot % 1'000'000'000;
  if (timerfd_settime(alarm_.get(), TFD_TIMER_ABSTIME, &spec, nullptr) != 0)
    fail("timerfd_settime");
}

void EventLoop::run_timers() {
  // Those that are due now: sockets get their turn between these and what these bring.
  const Clock::time_point now = Clock::now();
  while (!timers_.empty() && timers_.begin()->first <= now && !stopped_) {
    const auto due = timers_.extract(timers_.begin());
    due.mapped()();
  }
}

}  // namespace blindfuse::load
