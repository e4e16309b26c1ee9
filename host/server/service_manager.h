// Tells other programs the state of a service: systemd (sd_notify(3)), and by a file the program
// that started it.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace blindfuse {

// A file with the server's URL and a newline, by which the program that started the server learns
// that it accepts requests. The file exists from construction to destruction, and is never seen in
// part.
class ReadyFile {
 public:
  // Throws InputError or ResourceError if it cannot be written.
  ReadyFile(std::filesystem::path path, const std::string& url);
  ~ReadyFile() { remove(path_); }
  ReadyFile(const ReadyFile&) = delete;
  ReadyFile& operator=(const ReadyFile&) = delete;

  // Removes a ready file, if there is one that can be removed: for a process that ends without
  // destructors.
  static void remove(const std::filesystem::path& path) noexcept;
  // Ends the process with kExitFailed, without destructors, even if other threads hang. Removes the
  // file if that takes no longer than a second.
  [[noreturn]] static void end_process(const std::filesystem::path& path);

 private:
  const std::filesystem::path path_;
};

// Sends a state such as "READY=1" to the service manager that started this program, if there is one
// that expects it. Never fails: if the manager does not listen, nothing changes.
void notify_service_manager(std::string_view state);

// systemd's WatchdogSec= (sd_watchdog_enabled(3)): systemd ends and restarts a service that has
// sent nothing for that long.
class ServiceManagerWatchdog {
 public:
  // If the environment says that the manager watches this process, reports on a thread that it
  // runs, twice in the manager's time, until it is destroyed. Throws ResourceError if no thread can
  // be started.
  ServiceManagerWatchdog();
  ~ServiceManagerWatchdog();
  ServiceManagerWatchdog(const ServiceManagerWatchdog&) = delete;
  ServiceManagerWatchdog& operator=(const ServiceManagerWatchdog&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace blindfuse
