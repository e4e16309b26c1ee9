#include "host/system/worker_threads.h"

#include <sched.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "host/system/limits.h"
#include "src/system/threads.h"

namespace blindfuse {
namespace {

unsigned usable_processors() {
  cpu_set_t set;
  const unsigned count = sched_getaffinity(0, sizeof set, &set) == 0
                             ? static_cast<unsigned>(CPU_COUNT(&set))
                             : std::max(1u, std::thread::hardware_concurrency());
  // More threads than the group has time for would all be stopped until its next period.
  return std::min(count, ControlGroups().processor_count().value_or(count));
}

}  // namespace

WorkerThreads::WorkerThreads(unsigned count) {
  const unsigned wanted = count == 0 ? usable_processors() : count;
  threads_.reserve(wanted);
  try {
    for (unsigned index = 1; index < wanted; ++index) {
      threads_.emplace_back([this, index] { work(index); });
    }
  } catch (const std::system_error& error) {
    stop();
    fail_starting(std::to_string(wanted) + " threads, only " + std::to_string(threads_.size() + 1),
                  error);
  }
}

WorkerThreads::~WorkerThreads() { stop(); }

void WorkerThreads::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerThreads::run(const std::function<void(unsigned)>& job) {
  {
    const std::lock_guard lock(mutex_);
    job_ = &job;
    ++job_number_;
    busy_ = count();
  }
  changed_.notify_all();
  do_job(0);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return busy_ == 0; });
  job_ = nullptr;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void WorkerThreads::work(unsigned index) {
  uint64_t seen = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || job_number_ != seen; });
      if (stopping_) return;
      seen = job_number_;
    }
    do_job(index);
  }
}

void WorkerThreads::do_job(unsigned index) {
  std::exception_ptr error;
  try {
    (*job_)(index);
  } catch (...) {
    error = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  if (error && !error_) error_ = error;
  if (--busy_ == 0) changed_.notify_all();
}

Share share_of(uint64_t total, uint64_t grain, unsigned index, unsigned count) {
  const uint64_t grains = (total + grain - 1) / grain;
  const auto cut = [&](unsigned i) { return std::min(total, grains * i / count * grain); };
  return {cut(index), cut(index + 1)};
}

}  // namespace blindfuse
