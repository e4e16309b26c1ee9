// Brings the queries of all clients together into batches for one engine.
//
// Threads that have queries write them into a ring of slots and wait; one worker thread takes
// whatever waits at the ring's head, up to batch_max, the moment the engine is free: no timer when
// idle, full batches under load.
#pragma once

#include <condition_variable>
#include <cstdint>
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
  // The engine holds the matrix of this layout and is used by the worker alone. Takes (queue_max +
  // batch_max) * R words of address space, which cost memory only as far as they are used. Throws
  // EngineTrouble when there is not even that.
  BatchScheduler(Engine& engine, const Layout& layout, const BatchLimits& limits);
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
    size_t index = 0;       // of the query among those of its call
    bool unpacked = false;  // the slot's words are whole
  };

  size_t claim_slots(Waiting& waiting, size_t count);
  size_t slot_after(size_t slot, size_t count) const { return (slot + count) % slots_.size(); }
  void work();
  size_t batch_at_head() const;
  std::string run_batch(size_t count);
  void finish_batch(size_t count, const std::string& failure);

  Engine& engine_;
  const Layout layout_;
  const BatchLimits limits_;
  std::unique_ptr<uint32_t[]> words_;     // R for each slot
  std::unique_ptr<uint32_t[]> products_;  // C for each query of a batch

  mutable std::mutex mutex_;
  std::condition_variable changed_;  // something for the worker
  std::vector<Slot> slots_;
  size_t head_ = 0;     // the slot that is next, or first in the running batch
  size_t claimed_ = 0;  // slots from head_ on that are in use
  size_t running_ = 0;  // of these, the ones in the engine
  bool stopping_ = false;
  std::thread worker_;
};

}  // namespace blindfuse
