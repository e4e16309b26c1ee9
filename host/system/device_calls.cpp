#include "host/system/device_calls.h"

#include <algorithm>
#include <utility>

namespace blindfuse {

DeviceCalls::Call::Call(std::shared_ptr<DeviceCalls> calls, const char* what,
                        Clock::duration allowed)
    : calls_(std::move(calls)) {
  std::list<UnderWay> one = {{what, Clock::now(), allowed}};
  place_ = one.begin();
  const std::lock_guard lock(calls_->mutex_);
  calls_->under_way_.splice(calls_->under_way_.end(), one);
}

DeviceCalls::Call::~Call() {
  const std::lock_guard lock(calls_->mutex_);
  calls_->under_way_.erase(place_);
}

std::optional<DeviceCalls::UnderWay> DeviceCalls::latest() const {
  const std::lock_guard lock(mutex_);
  const auto at = std::ranges::min_element(under_way_, {}, &UnderWay::counts_from);
  if (at == under_way_.end()) return std::nullopt;
  return *at;
}

}  // namespace blindfuse
