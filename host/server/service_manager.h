// Notifies systemd (sd_notify(3)) that a service is ready, reads its files again, or stops.
#pragma once

#include <chrono>
#include <string_view>

namespace blindfuse {

// Sends a state such as "READY=1" to the service manager that started this program, if there is one
// that expects it. Never fails: if the manager does not listen, nothing changes.
void notify_service_manager(std::string_view state);

// systemd's WatchdogSec= (sd_watchdog_enabled(3)): systemd ends and restarts a service that has
// sent nothing for that long. For one thread.
class ServiceManagerWatchdog {
 public:
  // Reads from the environment whether the manager watches this process.
  ServiceManagerWatchdog();
  // Reports that the service works, as often as the manager expects it, which is twice in its time.
  void tell();

 private:
  using Clock = std::chrono::steady_clock;

  std::chrono::microseconds every_{0};  // 0: it does not watch
  Clock::time_point told_;
};

}  // namespace blindfuse
