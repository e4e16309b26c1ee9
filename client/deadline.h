// The time limit of a client's call, for any behaviour of the server.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
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

  // Runs `work`, which is the client's own and not the server's. The clock stops meanwhile.
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
  // 0 if the time is over.
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

}  // namespace blindfuse
