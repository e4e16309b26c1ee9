// Collects the queries of all clients into batches for one engine.
//
// Threads write their queries into a ring of slots. As soon as the engine is free, one worker
// thread takes all queries that wait at the ring's head, up to batch_max. So an idle scheduler
// needs no timer, and a loaded one has full batches. An engine that can begin with a batch while it
// computes another gets full batches early. Queries that no client waits for any more are left out
// before they cost anything.
//
// The clients take turns: a batch has one query of each before it has a second one of any. A client
// cannot fill the queue, and may have a quota.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "src/arithmetic/layout.h"
#include "src/arithmetic/packing_table.h"
#include "src/base/release_memory.h"
#include "src/engine/engine.h"
#include "src/protocol/public_polynomials.h"

namespace blindfuse {

struct BatchLimits {
  size_t batch_max = 32;  // queries in one product, at least 1
  size_t queue_max = 64;  // queries waiting next to those in the engine, at least 1
  // The time between two canaries that the engine answers, if it has one.
  std::chrono::milliseconds check_interval{10'000};
  uint64_t client_queries_per_minute_max = 0;  // the quota of each client; 0: none
  // The most clients whose quotas are remembered. Beyond that, all quotas begin again: a client
  // with that many addresses is not bound by quotas for each of them.
  size_t quota_clients_max = 65'536;
  std::function<std::chrono::steady_clock::time_point()> quota_clock =
      std::chrono::steady_clock::now;
};

// There is no room in the queue now, or none for this client.
class QueueFull : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The client has used up its quota.
class OverQuota : public std::runtime_error {
 public:
  OverQuota(const std::string& what, std::chrono::seconds retry_after)
      : std::runtime_error(what), retry_after_(retry_after) {}

  // The time after which the same queries are within the quota.
  std::chrono::seconds retry_after() const { return retry_after_; }

 private:
  const std::chrono::seconds retry_after_;
};

// The scheduler has been stopped.
class SchedulerStopped : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The queries of one request on their way through the engine. The thread that asks and the
// scheduler's worker share it. It begins as waiting. After that it is either dropped before the
// engine has it, or done.
class PendingAnswer {
 public:
  using Clock = std::chrono::steady_clock;

  enum class Outcome { kAnswered, kEngineFailed, kExpired };

  // The worker calls `on_done` once, after is_done() has become true. The call must not keep the
  // worker waiting. It is not made for an answer that was dropped.
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
  // The client has left, and the answer has no reader any more. The engine computes no more of its
  // queries than those that it has begun with. Any thread.
  void abandon() {
    if (drop()) return;
    State running = State::kRunning;
    state_.compare_exchange_strong(running, State::kDropped, std::memory_order_acq_rel);
  }

 private:
  friend class BatchScheduler;

  enum class State { kWaiting, kRunning, kDropped, kExpired, kDone };

  bool is_wanted() const {
    const State state = state_.load(std::memory_order_acquire);
    return state == State::kWaiting || state == State::kRunning;
  }
  // Returns false if it is not waiting any more. Ends with complete().
  bool expire() { return leave_waiting(State::kExpired); }
  bool leave_waiting(State next) {
    State waiting = State::kWaiting;
    return state_.compare_exchange_strong(waiting, next, std::memory_order_acq_rel);
  }
  // True if its queries go to the engine now. If its first query has gone to the engine, all of
  // them go.
  bool start() { return leave_waiting(State::kRunning) || state_.load() == State::kRunning; }
  void complete(Outcome outcome) {
    outcome_ = outcome;
    state_.store(State::kDone, std::memory_order_release);
    try {
      if (on_done_) on_done_();
    } catch (const std::exception&) {
      // A thread that waits finds it done at the deadline.
    }
  }

  // Fails the answer, whatever the state of its queries. After that, nothing may complete it.
  void give_up() {
    if (leave_waiting(State::kDropped) || state_.load() == State::kRunning) {
      complete(Outcome::kEngineFailed);
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

// Counts the queries of each batch. The worker calls it.
class BatchObserver {
 public:
  virtual ~BatchObserver() = default;

  // A query has left the queue for the engine.
  virtual void on_waited(std::chrono::duration<double> time) = 0;
  // A batch has ended. `time` is counted from its beginning, or from the end of the batch before it
  // if the two overlapped. So the sum of all times is the time in which the engine was busy.
  virtual void on_batch(size_t query_count, std::chrono::duration<double> time) = 0;
  // A batch failed with this error of the engine.
  virtual void on_failure(const std::exception& error) = 0;
};

class BatchScheduler {
 public:
  using Clock = PendingAnswer::Clock;

  // The engine holds the matrix of this layout, and only the worker uses it. Takes (queue_max + 2
  // batch_max + 1) times the room of a query in the engine's memory (src/engine/engine.h). The
  // observer, if any, outlives the scheduler. tables: those of every pack, if responses are packed.
  // polynomials: those of the database, where responses have a second level.
  // canary: that of an engine on a device, complete. It outlives the scheduler. The engine answers
  // it here in batches of all sizes, and then every check_interval in a batch of the next size.
  // Throws ResourceError if there is no such room, and DeviceLostError if a response is wrong.
  //
  // If the engine throws DeviceLostError later, or answers the canary wrong, this has the effect of
  // abandon(), and the observer is told.
  BatchScheduler(Engine& engine, const Layout& layout, const BatchLimits& limits,
                 BatchObserver* observer = nullptr,
                 const std::vector<SharedPackingTable>& tables = {}, const Canary* canary = nullptr,
                 const ring::PublicPolynomials* polynomials = nullptr);
  ~BatchScheduler();
  BatchScheduler(const BatchScheduler&) = delete;
  BatchScheduler& operator=(const BatchScheduler&) = delete;

  // Queues at least one query, in the form in which queries are sent, whole and one after another.
  // If responses are packed, check_packing_key does not refuse their packing keys. They are
  // copied. Queries that the engine has not begun with at the deadline get no answer. Any number of
  // threads. client: a name for the client that sends them, or empty if clients cannot be told
  // apart, which gives turns in the order of arrival, the whole queue, and no quota. A client that
  // already waits gets no more places in the queue than it leaves free. Throws QueueFull at once if
  // not all queries find room, OverQuota, and SchedulerStopped.
  std::shared_ptr<PendingAnswer> ask(std::span<const uint8_t> queries,
                                     Clock::time_point deadline = Clock::time_point::max(),
                                     std::function<void()> on_done = {},
                                     std::string_view client = {});

  // Checks that this many queries would find room now. Throws as ask() does if they would not.
  void check_room(size_t count, std::string_view client = {}) const;

  const BatchLimits& limits() const { return limits_; }
  // The number of queries in the queue now, without those in the engine.
  size_t waiting_count() const;

  // Refuses new queries, answers all that wait, and ends the worker.
  void stop();

  // Called for an engine that hangs or is wrong: refuses new queries, and fails all that wait and
  // all in the engine, which the worker does not touch again. Any thread.
  void abandon();

  // The number of clients in memory: those with queries in the queue or a quota in use, and some
  // whose quota was in use.
  size_t client_count() const;

 private:
  struct Client {
    size_t waiting = 0;         // queries in the queue
    uint64_t turn = 0;          // of the last of them
    Clock::time_point full_at;  // when its token bucket is full
  };
  using Clients = std::map<std::string, Client, std::less<>>;

  struct Slot {
    std::shared_ptr<PendingAnswer> answer;
    size_t index = 0;     // of the query among those of its request
    bool filled = false;  // with its query
    Clock::time_point claimed_at;
    uint64_t turn = 0;
    Clients::pointer client = nullptr;  // of a known client, until its query leaves the queue
  };

  struct Batch {
    size_t slot_count;   // from head_ on; the first query_count of them are in the engine
    size_t query_count;  // 0: none of them was wanted
    Clock::time_point begun_at;
    bool failed = false;
  };

  void require_room(size_t count, std::string_view client) const;
  void require_quota(size_t count, const Client& client) const;
  Clock::duration quota_time(size_t count) const;
  Clients::pointer enter(std::string_view client);
  size_t claim_slots(const std::shared_ptr<PendingAnswer>& answer, size_t count,
                     std::string_view client);
  void mark_filled(size_t slot);
  size_t slot_after(size_t slot, size_t count) const { return (slot + count) % slots_.size(); }
  void work();
  bool await_work(std::unique_lock<std::mutex>& lock);
  void check_first();
  void check_engine(std::unique_lock<std::mutex>& lock);
  void answer_canaries();
  bool is_check_due() const { return canary_ != nullptr && Clock::now() >= next_check_; }
  // The slots that could go to the engine now, after those that it has, and the number of them with
  // queries that are wanted.
  struct Next {
    size_t slot_count = 0;
    size_t query_count = 0;
  };
  // The work for a batch that is done without the lock.
  struct Sorted {
    std::vector<std::pair<size_t, size_t>> moves;  // of queries, from one slot to another
    std::vector<std::shared_ptr<PendingAnswer>> expired;
  };
  Next next_batch() const;
  void take_turns(size_t slot_count);
  void sort_out(Batch& batch);
  void begin_batch(std::unique_lock<std::mutex>& lock, size_t slot_count);
  void finish_batch(std::unique_lock<std::mutex>& lock);
  void report_failure(const std::exception& error, const std::string& where);

  const Layout layout_;
  const BatchLimits limits_;
  BatchObserver* const observer_;
  const Canary* const canary_;  // or none
  std::unique_ptr<AnswerPipeline> pipeline_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;  // something for the worker
  std::vector<Slot> slots_;
  size_t head_ = 0;     // the slot that is next, or first in the oldest batch
  size_t claimed_ = 0;  // slots from head_ on that are in use
  size_t running_ = 0;  // of these, the ones in the engine
  uint64_t turn_ = 0;   // the highest of a query that has left the queue
  Clients clients_;
  bool stopping_ = false;
  bool abandoned_ = false;

  // The worker uses these vectors, and an exception in it would not be caught if memory ran out. So
  // their room is allocated beforehand.
  std::vector<Batch> batches_;       // in the engine, the oldest first
  Clock::time_point last_end_ = {};  // of a batch
  Clock::time_point next_check_ = {};
  size_t check_size_ = 1;  // queries in the next check
  size_t check_count_ = 0;
  Sorted sorted_;                                     // of the batch that begins
  std::vector<size_t> turns_;                         // the queries that may be in it
  std::vector<std::shared_ptr<PendingAnswer>> done_;  // with the batch that ends
  std::thread worker_;
};

}  // namespace blindfuse
