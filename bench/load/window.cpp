#include "bench/load/window.h"

#include <algorithm>

namespace blindfuse::load {

void Window::merge(const Window& other) {
  seconds = std::max(seconds, other.seconds);
  for (const auto sum : {&Window::requests, &Window::lookups, &Window::left_out, &Window::bytes_up,
                         &Window::bytes_down, &Window::reconnects, &Window::resent,
                         &Window::waiting, &Window::given_up, &Window::epoch_changes,
                         &Window::idle_reopened, &Window::slow_answered, &Window::slow_closed}) {
    this->*sum += other.*sum;
  }
  paused_seconds += other.paused_seconds;
  cpu_seconds += other.cpu_seconds;
  latency.merge(other.latency);
  refused.merge(other.refused);
  for (const auto& [kind, count] : other.errors) errors[kind] += count;
}

}  // namespace blindfuse::load
