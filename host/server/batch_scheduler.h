// Brings the queries of all clients together into batches for one engine.
//
// Threads that have queries write them into a ring of slots and wait; one worker thread takes
// whatever waits at the ring's head, up to batch_max, the moment the engine is free: no timer when
// idle, full batches under load. An engine that can begin with a batch while it computes another
// gets full ones early.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "src/engine.h"
#include "src/layout.h"

namespace blindfuse {

struct BatchLimits {
  size_t batch_max = 32;  // queries in one product, at least 1
  size_t queue_max = 64;  // queries waiting beside those in the engine, at least 1
};

// There is no room in the queue, now.
class QueueFull : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The scheduler has been stopped.
class SchedulerStopped : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class BatchScheduler {
 public:
  // Called by the worker with what the engine threw when a batch failed.
  using FailureCallback = std::function<void(const std::exception& error)>;

  // The engine holds the matrix of this layout and is used by the worker alone. Takes (queue_max +
  // 2 batch_max) times a query's room where the engine wants it (src/engine.h). Throws
  // EngineTrouble when there is no such room.
  BatchScheduler(Engine& engine, const Layout& layout, const BatchLimits& limits,
                 FailureCallback on_failure = {});
  ~BatchScheduler();
  BatchScheduler(const BatchScheduler&) = delete;
  BatchScheduler& operator=(const BatchScheduler&) = delete;

  // The packed responses to packed queries (whole ones, at least one), both one after another;
  // returns when they are done. Any number of threads. Throws QueueFull, at once, when not all of
  // them find room; EngineTrouble when the engine failed in a batch that had one of them;
  // SchedulerStopped.
  std::string answer(std::span<const uint8_t> queries);

  const BatchLimits& limits() const { return limits_; }
  // Queries in the queue now, without those in the engine.
  size_t waiting_count() const;

  // Refuses new queries, answers all that wait, and ends the worker.
  void stop();

 private:
  // The queries of one call of answer(). Lives on the caller's stack until `left` is 0.
  struct Waiting {
    std::string responses;
    size_t left = 0;
    std::string failure;  // not empty: the engine failed
    std::condition_variable done;
  };
  struct Slot {
    Waiting* waiting = nullptr;
    size_t index = 0;     // of the query among those of its call
    bool filled = false;  // with its query
  };

  struct Batch {
    size_t count;
    std::string failure;  // not empty: it has not begun
  };

  size_t claim_slots(Waiting& waiting, size_t count);
  size_t slot_after(size_t slot, size_t count) const { return (slot + count) % slots_.size(); }
  void work();
  size_t next_batch() const;
  void begin_batch(std::unique_lock<std::mutex>& lock, size_t count);
  void finish_batch(std::unique_lock<std::mutex>& lock);
  void hand_out(std::span<const uint8_t> responses, size_t count) const;
  std::string describe_failure(const std::exception& error, size_t count) const;

  const Layout layout_;
  const BatchLimits limits_;
  const FailureCallback on_failure_;
  std::unique_ptr<AnswerPipeline> pipeline_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;  // something for the worker
  std::vector<Slot> slots_;
  size_t head_ = 0;            // the slot that is next, or first in the oldest batch
  size_t claimed_ = 0;         // slots from head_ on that are in use
  size_t running_ = 0;         // of these, the ones in the engine
  std::deque<Batch> batches_;  // in the engine, the oldest first
  bool stopping_ = false;
  std::thread worker_;
};

}  // namespace blindfuse
