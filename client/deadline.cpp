#include "client/deadline.h"

#include <blindfuse/errors.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

namespace blindfuse {
namespace {

using std::chrono::milliseconds;

// The limit is far from where the clock overflows.
constexpr milliseconds kAllowedMax = std::chrono::hours(24 * 365);
constexpr uint64_t kBytesMax =
    static_cast<uint64_t>(kAllowedMax.count()) / 1000 * kBytesPerSecondMin;

milliseconds time_for(uint64_t bytes) {
  return milliseconds(std::min(bytes, kBytesMax) * 1000 / kBytesPerSecondMin);
}

}  // namespace

Deadline::Call::Call(Deadline& deadline) : deadline_(deadline) {
  if (deadline_.depth_++ > 0) return;
  deadline_.bytes_ = 0;
  deadline_.allowed_ = milliseconds(0);
  deadline_.end_ = deadline_.now() + deadline_.timeout_;
}

void Deadline::allow(uint64_t bytes) {
  bytes_ += std::min(bytes, kBytesMax - bytes_);
  const milliseconds allowed = time_for(bytes_);
  end_ += allowed - allowed_;
  allowed_ = allowed;
}

milliseconds Deadline::left() const {
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(end_ - now()));
}

milliseconds Deadline::left_for(uint64_t bytes) const {
  return std::min<milliseconds>(left(), timeout_ + time_for(bytes));
}

void Deadline::check(const std::string& address) const {
  if (is_over()) throw ConnectionError(trouble(address));
}

std::string Deadline::trouble(const std::string& address) const {
  const auto whole = timeout_ + std::chrono::ceil<std::chrono::seconds>(allowed_);
  std::string text =
      "the call to " + address + " was not done in " + std::to_string(whole.count()) + " s";
  if (bytes_ > 0) {
    text += " (" + std::to_string(timeout_.count()) + " s, and " + std::to_string(bytes_) +
            " bytes at " + std::to_string(kBytesPerSecondMin / 1000) + " kB/s)";
  }
  return text + "; allow more with --timeout";
}

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
