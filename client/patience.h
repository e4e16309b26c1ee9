// Decides when to give up waiting for a server, and keeps the reason.
#pragma once

#include <poll.h>

#include <exception>
#include <functional>
#include <optional>
#include <span>

#include "client/deadline.h"

namespace blindfuse {

inline constexpr int kWaitSliceMs = 50;

enum class GaveUp {
  kNot,
  kStopped,      // keep_waiting said so
  kCallOver,     // the deadline of the call has passed
  kNothingCame,  // for as long as one wait may be
  kHeadLate,     // the head of an answer has begun, and did not end
};

// For one request at a time.
class Patience {
 public:
  // `keep_waiting` is called every kWaitSliceMs while nothing comes. It may be empty. Its
  // exceptions stop the request: throw_stopped() throws them.
  explicit Patience(std::function<bool()> keep_waiting) : keep_waiting_(std::move(keep_waiting)) {}

  // Starts with the next request. `deadline` outlives it.
  void begin(const Deadline& deadline);

  // Called from time to time, whether or not bytes come. Returns false from the moment when there
  // is no time left or the caller does not want to go on. Throws nothing: OpenSSL's C code is among
  // its callers.
  bool may_go_on() noexcept;
  // While an object of this type exists, may_go_on() also gives up at `until`, for the reason
  // `late`.
  class Limit {
   public:
    Limit(Patience& patience, Deadline::TimePoint until, GaveUp late) : patience_(patience) {
      patience.limit_ = until;
      patience.late_ = late;
    }
    ~Limit() { patience_.limit_.reset(); }
    Limit(const Limit&) = delete;
    Limit& operator=(const Limit&) = delete;

   private:
    Patience& patience_;
  };

  // Waits for an event of poll() at one of the sockets. Returns false if it gave up; at `until`,
  // for the reason `late`.
  bool wait(std::span<pollfd> sockets, Deadline::TimePoint until, GaveUp late);

  Deadline::TimePoint now() const { return deadline_->now(); }
  void give_up(GaveUp why) { gave_up_ = why; }
  GaveUp gave_up() const { return gave_up_; }
  // Throws what keep_waiting threw, or CancelledError.
  [[noreturn]] void throw_stopped();

 private:
  const std::function<bool()> keep_waiting_;
  const Deadline* deadline_ = nullptr;
  Deadline::TimePoint asked_;
  std::optional<Deadline::TimePoint> limit_;
  GaveUp late_ = GaveUp::kNot;  // at limit_
  GaveUp gave_up_ = GaveUp::kNot;
  std::exception_ptr thrown_;  // by keep_waiting_
};

}  // namespace blindfuse
