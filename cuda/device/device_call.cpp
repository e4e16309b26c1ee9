#include "cuda/device/device_call.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "src/base/errors.h"

namespace blindfuse {
namespace {

using Clock = std::chrono::steady_clock;

struct Calls {
  std::mutex mutex;
  std::list<DeviceCall::UnderWay> under_way;
};

Calls& calls() {
  // The object is never destroyed: static objects may still make calls after it would be.
  static auto* const all = new Calls;
  return *all;
}

// The call whose time was over first, or will be over first.
std::optional<DeviceCall::UnderWay> latest() {
  const std::lock_guard lock(calls().mutex);
  const auto& all = calls().under_way;
  const auto at = std::ranges::min_element(all, {}, &DeviceCall::UnderWay::counts_from);
  if (at == all.end()) return std::nullopt;
  return *at;
}

class Watch {
 public:
  Watch(std::chrono::milliseconds limit, std::function<void(const std::string&)> on_hang)
      : limit_(limit), on_hang_(std::move(on_hang)), thread_([this] { run(); }) {}
  ~Watch() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  void run() {
    const auto look_every = std::min<std::chrono::milliseconds>(limit_ / 4, kLookEvery);
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, look_every, [this] { return is_over_; })) {
      const auto call = latest();
      if (!call || Clock::now() - call->counts_from < limit_) continue;
      lock.unlock();
      return on_hang_(std::string("the device hangs: ") + call->what + " has not returned");
    }
  }

  static constexpr std::chrono::milliseconds kLookEvery{500};

  const std::chrono::milliseconds limit_;
  const std::function<void(const std::string&)> on_hang_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;  // last: it uses all others
};

}  // namespace

DeviceCall::DeviceCall(const char* what, Clock::duration allowed) {
  std::list<UnderWay> one = {{what, Clock::now() + allowed}};
  place_ = one.begin();
  const std::lock_guard lock(calls().mutex);
  calls().under_way.splice(calls().under_way.end(), one);
}

DeviceCall::~DeviceCall() {
  const std::lock_guard lock(calls().mutex);
  calls().under_way.erase(place_);
}

std::shared_ptr<void> watch_device_calls(std::chrono::milliseconds limit,
                                         std::function<void(const std::string&)> on_hang) {
  try {
    return std::make_shared<Watch>(limit, std::move(on_hang));
  } catch (const std::system_error& error) {
    throw ResourceError(std::string("no thread can be started for the device: ") + error.what());
  }
}

}  // namespace blindfuse
