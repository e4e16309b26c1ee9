#include "tests/cuda/fake_device.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/cuda/fake_faults.h"
#include "tests/cuda/fake_runtime.h"

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

namespace {

class SharedMemory {
 public:
  void allow(const void* kernel, uint32_t bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes > kMax) {
      throw std::logic_error("a kernel is allowed " + std::to_string(bytes) +
                             " bytes of shared memory: there are " + std::to_string(kMax));
    }
    allowed_[{current_device, kernel}] = bytes;
  }
  void require(const void* kernel, uint32_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto at = allowed_.find({current_device, kernel});
    const uint32_t most = at == allowed_.end() ? kUnasked : at->second;
    if (bytes > most) {
      throw std::logic_error("a launch with " + std::to_string(bytes) +
                             " bytes of shared memory of a kernel that is allowed " +
                             std::to_string(most));
    }
  }

 private:
  static constexpr uint32_t kMax = 227 << 10;
  static constexpr uint32_t kUnasked = 48 << 10;

  std::mutex mutex_;
  std::map<std::pair<int, const void*>, uint32_t> allowed_;
};

SharedMemory& shared_memory() {
  static SharedMemory memory;
  return memory;
}

// Which kernels are on which device.
class LoadedKernels {
 public:
  static LoadedKernels& get() {
    static LoadedKernels kernels;
    return kernels;
  }

  void load(const void* kernel) {
    const std::lock_guard lock(mutex_);
    loaded_.insert({current_device, kernel});
  }
  void launch(const void* kernel, const char* name) {
    const std::lock_guard lock(mutex_);
    if (loaded_.insert({current_device, kernel}).second) late_.insert(name);
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    loaded_.clear();
    late_.clear();
  }
  std::vector<std::string> late() {
    const std::lock_guard lock(mutex_);
    return {late_.begin(), late_.end()};
  }

 private:
  std::mutex mutex_;
  std::set<std::pair<int, const void*>> loaded_;
  std::set<std::string> late_;
};

void run_kernel(const Run& run, LaunchFault fault) {
  switch (fault) {
    case LaunchFault::kNone:
    case LaunchFault::kSpoil:
    case LaunchFault::kMiscount:
      return run(fault);
    case LaunchFault::kFault:
      return lose(cudaErrorIllegalAddress);
    case LaunchFault::kHang:
      return hang();
    case LaunchFault::kSkip:
      return;
    case LaunchFault::kDie:
      std::raise(SIGKILL);
  }
}

}  // namespace

cudaError_t launch(const char* name, const void* kernel, uint32_t shared_bytes, cudaStream_t stream,
                   Run run) {
  auto* const queue = reinterpret_cast<Queue*>(stream);
  shared_memory().require(kernel, shared_bytes);
  if (queue->device != current_device) {
    give_up("a stream or event of another than the current device is used");
  }
  if (const cudaError_t error = begin("cudaLaunchKernel")) return error;
  LoadedKernels::get().launch(kernel, name);
  Devices::get().put(
      queue, {[run = std::move(run), fault = next_launch(name)] { run_kernel(run, fault); }});
  return cudaSuccess;
}

cudaError_t allow_shared(const void* kernel, uint32_t bytes) {
  if (const cudaError_t error = begin("cudaFuncSetAttribute")) return error;
  shared_memory().allow(kernel, bytes);
  return cudaSuccess;
}

cudaError_t load_kernel(const void* kernel) {
  if (const cudaError_t error = begin("cudaFuncGetAttributes")) return error;
  LoadedKernels::get().load(kernel);
  return cudaSuccess;
}

void forget_kernels() { LoadedKernels::get().forget(); }
std::vector<std::string> kernels_loaded_late() { return LoadedKernels::get().late(); }

}  // namespace blindfuse::fake_cuda
