// The end of a process whose GPU computed a wrong result, hung or was lost.
#pragma once

#include <filesystem>
#include <functional>
#include <mutex>
#include <string>

namespace blindfuse {

// Any thread.
class DeviceEnd {
 public:
  // ready_file: removed when the process ends; empty: none.
  explicit DeviceEnd(std::filesystem::path ready_file = {}) : ready_file_(std::move(ready_file)) {}

  // The device's description, for the message.
  void set_device(std::string device);
  // The functions that a service runs for its clients before the process ends. withhold: fails all
  // that wait for the engine, at once. send: sends what there is to send, for two seconds at most.
  // The caller sets empty functions before what they use is destroyed.
  void set_service(std::function<void()> withhold, std::function<void()> send);

  // Ends the process with kExitFailed, within some seconds, whatever hangs. Logs one line with
  // `what` and the device, and leaves the file of host/system/device_fault.h. Further callers, also
  // of the other functions, wait for the end.
  [[noreturn]] void end(const std::string& what);

 private:
  const std::filesystem::path ready_file_;
  std::mutex mutex_;
  std::string device_;
  std::function<void()> withhold_, send_;
};

}  // namespace blindfuse
