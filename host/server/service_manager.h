// What systemd wants to hear of a service (sd_notify(3)): when it is ready, reads its files again,
// or stops.
#pragma once

#include <chrono>
#include <string_view>

namespace blindfuse {

// Sends a state such as "READY=1" to the service manager that started this program, if one did, and
// wants to know. Never fails: a manager that does not listen changes nothing.
void notify_service_manager(std::string_view state);

// systemd's WatchdogSec= (sd_watchdog_enabled(3)): a service that is not heard of for that long is
// ended and started again. For one thread.
class ServiceManagerWatchdog {
 public:
  // Asks the environment whether the manager watches this process.
  ServiceManagerWatchdog();
  // Says that the service works, as often as the manager wants, which is twice in its time.
  void tell();

 private:
  using Clock = std::chrono::steady_clock;

  std::chrono::microseconds every_{0};  // 0: it does not watch
  Clock::time_point told_;
};

}  // namespace blindfuse
