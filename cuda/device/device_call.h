// The calls of CUDA that are under way. Any of them may never return.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <string>

namespace blindfuse {

// The time that a driver may take to start, and to load or compile the code of kernels, in addition
// to the time of every call.
inline constexpr std::chrono::seconds kDriverStartAllowance{120};

// A call under way, from construction to destruction. Any thread.
class DeviceCall {
 public:
  // what: for people, and outlives it. allowed: the time in addition to that of every call.
  explicit DeviceCall(const char* what, std::chrono::steady_clock::duration allowed = {});
  ~DeviceCall();
  DeviceCall(const DeviceCall&) = delete;
  DeviceCall& operator=(const DeviceCall&) = delete;

  struct UnderWay {
    const char* what;
    std::chrono::steady_clock::time_point counts_from;
  };

 private:
  std::list<UnderWay>::iterator place_;
};

// Watches all calls of this process as long as the returned object lives. If a call takes longer
// than `limit`, on_hang is called once, on a thread of its own, with a text for people that names
// the call. Throws ResourceError if no thread can be started.
std::shared_ptr<void> watch_device_calls(std::chrono::milliseconds limit,
                                         std::function<void(const std::string& what)> on_hang);

}  // namespace blindfuse
