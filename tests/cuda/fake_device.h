// The devices of the stand-in for the CUDA runtime: their memory, and their queues of work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

namespace blindfuse::fake_cuda {

// Of each device.
inline constexpr int kProcessors = 3;

// Where pinned memory is: on no device.
inline constexpr int kHost = -1;

// Work that has been put into a stream and not been done.
struct Queue {
  struct Work {
    std::function<void()> run;
    // Once the device is lost no work is done, but what marks that it is.
    bool is_mark = false;
  };
  int device = 0;
  std::deque<Work> work;
};

// An event has happened when the work of its stream up to where it was recorded is done.
struct Event {
  int device = 0;
  std::shared_ptr<bool> done = std::make_shared<bool>(true);
  Queue* queue = nullptr;
};

// All of them. Work is done as late as CUDA permits: when somebody waits for it, or when another
// queue that waits for it runs. So whoever reads results too early, writes again what is still to
// be copied, or frees what is still in use, is wrong here. Or, with BLINDFUSE_FAKE_CUDA=eager, at
// once, which finds those who count on being first.
class Devices {
 public:
  static Devices& get();

  Queue* add_queue(int device);
  void remove_queue(Queue* queue);
  void put(Queue* queue, Queue::Work work);
  void finish(Queue* queue);
  void finish_all(int device);
  // Runs the event's queue until it has happened.
  void reach(const Event& event);

  // Null when there is no room.
  void* allocate(int device, size_t bytes);
  // Not waited for: using memory that is gone is what AddressSanitizer is to find.
  void free(void* memory);
  size_t free_bytes(int device);
  size_t allocated_bytes();
  // The most that was allocated on this device at any time since the peak was reset.
  size_t peak_bytes(int device);
  void reset_peaks();
  // As a new process finds them: without queues and allocations. Whoever has one must not use it.
  void begin_anew();
  // Ends the process when this is memory of another device.
  void require_on(int device, const void* memory);

 private:
  struct Allocation {
    int device;
    size_t bytes;
  };

  Devices();
  void run_next(Queue* queue);

  const bool eager_;
  std::recursive_mutex mutex_;
  std::deque<Queue*> queues_;
  std::map<const void*, Allocation> allocations_;
  std::map<int, size_t> used_;
  std::map<int, size_t> peak_;
};

// Says why, and ends the process: for what CUDA would leave undefined.
[[noreturn]] void give_up(const char* why);

}  // namespace blindfuse::fake_cuda
