// How long a call of a client may take, whatever the server does.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace blindfuse {

// A call gets a second more for each this many bytes that it moves. Slow lines are faster, and so
// are anonymity networks.
inline constexpr uint64_t kBytesPerSecondMin = 32'000;

// One for all requests of a call, those that are repeated and those that go on where another broke
// included. One thread at a time.
class Deadline {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Clock = std::function<TimePoint()>;

  explicit Deadline(std::chrono::seconds timeout, Clock clock = std::chrono::steady_clock::now)
      : timeout_(timeout), clock_(std::move(clock)) {}
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  // A call, from its beginning to its end: `timeout`, until more is allowed. A call within another
  // is part of it.
  class Call {
   public:
    explicit Call(Deadline& deadline);
    ~Call() { --deadline_.depth_; }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    Deadline& deadline_;
  };

  // Gives the call under way the time for this many bytes. They are those that the manifest names,
  // which the limits of ClientOptions bound; never those of a header, which a server can change
  // with every answer.
  void allow(uint64_t bytes);

  // Runs `work`, which is the client's own and not the server's: the clock stands still for it.
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
  // Of the call under way.
  TimePoint end() const { return end_; }
  bool is_over() const { return now() >= end_; }
  // 0 when it is over.
  std::chrono::milliseconds left() const;
  // For one request of several, which moves this many bytes: as long as a call of its own would
  // have, and no longer than left().
  std::chrono::milliseconds left_for(uint64_t bytes) const;

  // Throws ConnectionError, in the words of trouble(), when it is over.
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
