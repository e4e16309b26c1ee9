#include "tests/cuda/fake_device.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#include "tests/cuda/fake_faults.h"

namespace blindfuse::fake_cuda {
namespace {

constexpr std::align_val_t kAlignment{256};

bool is_eager() {
  const char* order = std::getenv("BLINDFUSE_FAKE_CUDA");
  return order != nullptr && std::string_view(order) == "eager";
}

}  // namespace

void give_up(const char* why) {
  std::fprintf(stderr, "the stand-in for CUDA: %s\n", why);
  std::abort();
}

Devices& Devices::get() {
  static Devices devices;
  return devices;
}

Devices::Devices() : eager_(is_eager()) {}

Queue* Devices::add_queue(int device) {
  const std::lock_guard lock(mutex_);
  queues_.push_back(new Queue{device, {}});
  return queues_.back();
}

void Devices::remove_queue(Queue* queue) {
  const std::lock_guard lock(mutex_);
  finish(queue);
  std::erase(queues_, queue);
  delete queue;
}

void Devices::put(Queue* queue, Queue::Work work) {
  const std::lock_guard lock(mutex_);
  queue->work.push_back(std::move(work));
  if (eager_) finish(queue);
}

void Devices::run_next(Queue* queue) {
  // Taken out first: it may finish other queues, which may come back to this one.
  const Queue::Work next = std::move(queue->work.front());
  queue->work.pop_front();
  if (next.is_mark || lost() == 0) next.run();
}

void Devices::finish(Queue* queue) {
  const std::lock_guard lock(mutex_);
  while (!queue->work.empty()) run_next(queue);
}

void Devices::finish_all(int device) {
  const std::lock_guard lock(mutex_);
  for (Queue* queue : queues_) {
    if (queue->device == device) finish(queue);
  }
}

void Devices::reach(const Event& event) {
  const std::lock_guard lock(mutex_);
  while (!*event.done) {
    if (event.queue->work.empty()) give_up("an event that nothing leads to");
    run_next(event.queue);
  }
}

void* Devices::allocate(int device, size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (device != kHost && bytes > free_bytes(device)) return nullptr;
  void* memory = ::operator new(bytes, kAlignment);
  std::memset(memory, 0xb7, bytes);
  allocations_[memory] = {device, bytes};
  used_[device] += bytes;
  peak_[device] = std::max(peak_[device], used_[device]);
  return memory;
}

void Devices::free(void* memory) {
  const std::lock_guard lock(mutex_);
  const auto at = allocations_.find(memory);
  if (at == allocations_.end()) give_up("memory is freed that was not allocated");
  used_[at->second.device] -= at->second.bytes;
  allocations_.erase(at);
  ::operator delete(memory, kAlignment);
}

size_t Devices::free_bytes(int device) {
  const std::lock_guard lock(mutex_);
  return device_bytes() - std::min<size_t>(device_bytes(), used_[device]);
}

size_t Devices::peak_bytes(int device) {
  const std::lock_guard lock(mutex_);
  return peak_[device];
}

void Devices::reset_peaks() {
  const std::lock_guard lock(mutex_);
  peak_ = used_;
}

size_t Devices::allocated_bytes() {
  const std::lock_guard lock(mutex_);
  size_t all = 0;
  for (const auto& [device, bytes] : used_) all += bytes;
  return all;
}

void Devices::begin_anew() {
  const std::lock_guard lock(mutex_);
  for (Queue* queue : queues_) delete queue;
  queues_.clear();
  for (const auto& [memory, allocation] : allocations_) {
    ::operator delete(const_cast<void*>(memory), kAlignment);
  }
  allocations_.clear();
  used_.clear();
}

void Devices::require_on(int device, const void* memory) {
  const std::lock_guard lock(mutex_);
  auto at = allocations_.upper_bound(memory);
  if (at == allocations_.begin()) return;
  --at;
  const auto offset =
      static_cast<size_t>(static_cast<const char*>(memory) - static_cast<const char*>(at->first));
  if (offset >= at->second.bytes) return;
  if (at->second.device != kHost && at->second.device != device) {
    give_up("memory of another device is used");
  }
}

}  // namespace blindfuse::fake_cuda
