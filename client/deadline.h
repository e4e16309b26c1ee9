// The limits of a client's call: its time, for any behaviour of the server, and its caller's wish
// to go on.
#pragma once

#include <blindfuse/errors.h>
#include <blindfuse/progress.h>
#include <poll.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace blindfuse {

// A call gets one second more for this many bytes that it moves. Slow lines are faster, and so are
// anonymity networks.
inline constexpr uint64_t kBytesPerSecondMin = 32'000;

// One deadline for all requests of a call, including those that are repeated and those that
// continue a broken one. One thread at a time.
class Deadline {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Clock = std::function<TimePoint()>;

  explicit Deadline(std::chrono::seconds timeout, Clock clock = std::chrono::steady_clock::now)
      : timeout_(timeout), clock_(std::move(clock)) {}
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  // A call, from its beginning to its end: `timeout`, until more is allowed. A call within another
  // call is part of it.
  class Call {
   public:
    explicit Call(Deadline& deadline);
    ~Call() { --deadline_.depth_; }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    Deadline& deadline_;
  };

  // Gives the current call the time for this many bytes. The manifest names their number, and the
  // limits of ClientOptions bound it. A header never determines it, since a server can change
  // headers with every answer.
  void allow(uint64_t bytes);

  // Runs `work` with the clock stopped: it is the client's own time and not the server's.
  template <class Work>
  auto stopped(Work work) {
    struct Stop {
      Deadline& deadline;
      const TimePoint since = deadline.now();
      ~Stop() { deadline.end_ += deadline.now() - since; }
    } const stop{*this};
    return work();
  }

  TimePoint now() const { return clock_(); }
  // The deadline of the current call.
  TimePoint end() const { return end_; }
  bool is_over() const { return now() >= end_; }
  // Returns 0 if the time is over.
  std::chrono::milliseconds left() const;
  // The time for one request of several that moves this many bytes: as long as a call of its own
  // would have, and no longer than left().
  std::chrono::milliseconds left_for(uint64_t bytes) const;

  // Throws ConnectionError with the text of trouble() if the time is over.
  void check(const std::string& address) const;
  // "the call to http://127.0.0.1:8080 was not done in 60 s; allow more with --timeout"
  std::string trouble(const std::string& address) const;

 private:
  const std::chrono::seconds timeout_;
  const Clock clock_;
  int depth_ = 0;  // of calls within calls
  TimePoint end_;
  uint64_t bytes_ = 0;
  std::chrono::milliseconds allowed_{0};  // for them
};

inline constexpr int kWaitSliceMs = 50;

enum class GaveUp {
  kNot,
  kStopped,      // keep_waiting said so
  kCallOver,     // the deadline of the call has passed
  kNothingCame,  // for as long as one wait may be
  kHeadLate,     // the head of an answer has begun, and did not end
};

// Decides when to give up waiting for a server, and keeps the reason. For one request at a time.
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

// Throws CancelledError if the callback returns false.
inline void report_progress(const ProgressCallback& callback, const ClientProgress& progress) {
  if (callback && !callback(progress)) throw CancelledError();
}

}  // namespace blindfuse
