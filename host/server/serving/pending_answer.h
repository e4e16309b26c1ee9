// The queries of one request on their way through the engine.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "src/base/release_memory.h"

namespace blindfuse {

// Shared by the thread that asks and the scheduler's worker. It begins as waiting. After that it is
// either dropped before the engine has it, or done.
class PendingAnswer {
 public:
  using Clock = std::chrono::steady_clock;

  enum class Outcome { kAnswered, kEngineFailed, kExpired };

  // The worker calls `on_done` once, after is_done() has become true. The call must not keep the
  // worker waiting. It is never made for an answer that was dropped.
  PendingAnswer(size_t query_count, Clock::time_point deadline, std::function<void()> on_done)
      : query_count_(query_count),
        deadline_(deadline),
        on_done_(std::move(on_done)),
        left_(query_count) {}
  PendingAnswer(const PendingAnswer&) = delete;
  PendingAnswer& operator=(const PendingAnswer&) = delete;

  size_t query_count() const { return query_count_; }

  // Any thread. The other members may be read after this is true.
  bool is_done() const { return state_.load(std::memory_order_acquire) == State::kDone; }
  Outcome outcome() const { return outcome_; }
  // Responses as they are sent, one after another, in the order of the queries.
  std::string& responses() { return responses_; }

  // The answer is no longer wanted. Any thread. Returns false if the engine has begun with it, or
  // if it is done.
  bool drop() {
    if (!leave_waiting(State::kDropped)) return false;
    release_memory(responses_);  // its slots may keep the rest for a while
    return true;
  }

 private:
  friend class BatchScheduler;

  enum class State { kWaiting, kRunning, kDropped, kExpired, kDone };

  bool is_wanted() const {
    const State state = state_.load(std::memory_order_acquire);
    return state == State::kWaiting || state == State::kRunning;
  }
  // Returns false if it is not waiting any more. Ends with finish().
  bool expire() { return leave_waiting(State::kExpired); }
  bool leave_waiting(State next) {
    State waiting = State::kWaiting;
    return state_.compare_exchange_strong(waiting, next, std::memory_order_acq_rel);
  }
  // Whether its queries go to the engine now. If its first query has gone to the engine, all of
  // them go.
  bool start() { return leave_waiting(State::kRunning) || state_.load() == State::kRunning; }
  void finish(Outcome outcome) {
    outcome_ = outcome;
    state_.store(State::kDone, std::memory_order_release);
    try {
      if (on_done_) on_done_();
    } catch (const std::exception&) {
      // A thread that waits finds it done at the deadline.
    }
  }

  // Fails the answer, whatever the state of its queries. After that, nothing may finish them.
  void give_up() {
    if (leave_waiting(State::kDropped) || state_.load() == State::kRunning) {
      finish(Outcome::kEngineFailed);
    }
  }

  const size_t query_count_;
  const Clock::time_point deadline_;
  const std::function<void()> on_done_;
  std::atomic<State> state_ = State::kWaiting;
  Outcome outcome_ = Outcome::kAnswered;
  std::string responses_;
  size_t left_;  // queries without a response; the scheduler's
  bool failed_ = false;
};

}  // namespace blindfuse
