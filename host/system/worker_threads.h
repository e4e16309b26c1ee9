// A fixed set of threads that do one job together.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace blindfuse {

class WorkerThreads {
 public:
  // 0: one for each processor that this process may use. The calling thread is one of them. Throws
  // ResourceError if the system gives no more threads.
  explicit WorkerThreads(unsigned count);
  ~WorkerThreads();
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;

  unsigned count() const { return static_cast<unsigned>(threads_.size()) + 1; }

  // Runs job(0) .. job(count() - 1), each on a thread of its own, and returns after all have
  // returned. One caller at a time. If jobs throw, the first exception is thrown here.
  void run(const std::function<void(unsigned)>& job);

  // Calls work(thread, number) once for every number below count, each on a free thread with the
  // index `thread`. An exception of a call ends the others, and is thrown here.
  template <class Work>
  void run_each(size_t count, const Work& work) {
    std::atomic<size_t> next = 0;
    run([&](unsigned thread) {
      try {
        for (size_t i = next++; i < count; i = next++) work(thread, i);
      } catch (...) {
        next = count;  // the other threads need not finish work that no one will use
        throw;
      }
    });
  }

 private:
  void stop();
  void work(unsigned index);
  void do_job(unsigned index);

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void(unsigned)>* job_ = nullptr;
  uint64_t job_number_ = 0;
  unsigned busy_ = 0;
  bool stopping_ = false;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

// The part of 0 .. total-1 for worker `index` of `count`, if it is cut into multiples of `grain`.
struct Share {
  uint64_t first;
  uint64_t last;
};
Share share_of(uint64_t total, uint64_t grain, unsigned index, unsigned count);

}  // namespace blindfuse
