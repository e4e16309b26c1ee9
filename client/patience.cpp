#include "client/patience.h"

#include <blindfuse/errors.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

namespace blindfuse {

using std::chrono::milliseconds;

void Patience::begin(const Deadline& deadline) {
  deadline_ = &deadline;
  asked_ = deadline.now();
  gave_up_ = GaveUp::kNot;
  thrown_ = nullptr;
}

bool Patience::may_go_on() noexcept {
  if (gave_up_ != GaveUp::kNot) return false;
  if (deadline_->is_over()) {
    gave_up_ = GaveUp::kCallOver;
    return false;
  }
  const auto now = this->now();
  if (limit_ && now >= *limit_) {
    gave_up_ = late_;
    return false;
  }
  if (now - asked_ < milliseconds(kWaitSliceMs)) return true;
  asked_ = now;
  try {
    if (keep_waiting_ && !keep_waiting_()) gave_up_ = GaveUp::kStopped;
  } catch (...) {
    thrown_ = std::current_exception();
    gave_up_ = GaveUp::kStopped;
  }
  return gave_up_ == GaveUp::kNot;
}

void Patience::throw_stopped() {
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  throw CancelledError();
}

bool Patience::wait(std::span<pollfd> sockets, Deadline::TimePoint until, GaveUp late) {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(std::min(until, deadline_->end()) - now());
    const auto slice = std::clamp(left, milliseconds(0), milliseconds(kWaitSliceMs));
    const int ready = poll(sockets.data(), sockets.size(), static_cast<int>(slice.count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    if (!may_go_on()) return false;
    if (now() >= until) {
      gave_up_ = late;
      return false;
    }
  }
}

}  // namespace blindfuse
