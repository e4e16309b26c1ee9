// The calls of a device's driver that are under way. Any of them may never return.
#pragma once

#include <chrono>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace blindfuse {

// The time that a driver may take to start, and to load or compile the code of kernels.
inline constexpr std::chrono::seconds kDeviceStartLimit{120};

// Any thread.
class DeviceCalls {
 public:
  using Clock = std::chrono::steady_clock;

  struct UnderWay {
    const char* what;  // for people: "a checksum of the matrix"
    Clock::time_point since;
    Clock::duration allowed;  // in addition to what every call may take

    Clock::time_point counts_from() const { return since + allowed; }
  };

  // A call under way, from construction to destruction.
  class Call {
   public:
    // what: for people, and outlives it. allowed: the time that it may take in addition to the time
    // of every call.
    Call(std::shared_ptr<DeviceCalls> calls, const char* what, Clock::duration allowed = {});
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    const std::shared_ptr<DeviceCalls> calls_;
    std::list<UnderWay>::iterator place_;
  };

  // The call whose time was over first, or will be. Nothing if none is under way.
  std::optional<UnderWay> latest() const;

 private:
  mutable std::mutex mutex_;
  std::list<UnderWay> under_way_;
};

}  // namespace blindfuse
