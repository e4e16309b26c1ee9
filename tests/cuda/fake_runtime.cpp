// A stand-in for the CUDA runtime, so that all of the CUDA engine runs on the CPU: device memory is
// the host's, and kernels are the emulator's (tests/cuda/emulator.h).
//
// What is put into a stream happens as late as CUDA permits: when somebody waits for it, or when
// another stream that waits for it runs. So whoever reads results too early, writes again what is
// still to be copied, or frees what is still in use, is wrong here. Or, with
// BLINDFUSE_FAKE_CUDA=eager, at once, which finds those who count on being first.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tests/cuda/fake_runtime.h"

namespace blindfuse::fake_cuda {
namespace {

constexpr size_t kDeviceBytes = size_t{4} << 30;
constexpr std::align_val_t kAlignment{256};
constexpr int kProcessors = 3;

using Work = std::function<void()>;

// Work that has been put into a stream and not been done.
struct Queue {
  std::deque<Work> work;
};

// How much of a stream must be done for an event to have happened.
struct Mark {
  Queue* queue = nullptr;
  uint64_t until = 0;
};

class Device {
 public:
  static Device& get() {
    static Device device;
    return device;
  }

  std::recursive_mutex mutex;

  void put(Queue* queue, Work work) {
    const std::lock_guard lock(mutex);
    if (eager_) return work();
    queue->work.push_back(std::move(work));
  }
  void finish(Queue* queue) {
    const std::lock_guard lock(mutex);
    while (!queue->work.empty()) {
      // Taken out first: it may finish other queues, which may come back to this one.
      const Work next = std::move(queue->work.front());
      queue->work.pop_front();
      next();
    }
  }
  void finish_all() {
    const std::lock_guard lock(mutex);
    for (Queue* queue : queues_) finish(queue);
  }

  Queue* add_queue() {
    const std::lock_guard lock(mutex);
    queues_.push_back(new Queue);
    return queues_.back();
  }
  void remove_queue(Queue* queue) {
    const std::lock_guard lock(mutex);
    finish(queue);
    std::erase(queues_, queue);
    delete queue;
  }

  void* allocate(size_t bytes) {
    const std::lock_guard lock(mutex);
    if (bytes > kDeviceBytes - used_) return nullptr;
    void* memory = ::operator new(bytes, kAlignment);
    std::memset(memory, 0xb7, bytes);
    sizes_[memory] = bytes;
    used_ += bytes;
    return memory;
  }
  // Not waited for: using memory that is gone is what AddressSanitizer is to find.
  void free(void* memory) {
    const std::lock_guard lock(mutex);
    const auto at = sizes_.find(memory);
    if (at == sizes_.end()) std::abort();
    used_ -= at->second;
    sizes_.erase(at);
    ::operator delete(memory, kAlignment);
  }
  size_t free_bytes() {
    const std::lock_guard lock(mutex);
    return kDeviceBytes - used_;
  }

 private:
  const bool eager_ = std::getenv("BLINDFUSE_FAKE_CUDA") != nullptr &&
                      std::string_view(std::getenv("BLINDFUSE_FAKE_CUDA")) == "eager";
  std::deque<Queue*> queues_;
  std::map<void*, size_t> sizes_;
  size_t used_ = 0;
};

Queue* queue_of(cudaStream_t stream) { return reinterpret_cast<Queue*>(stream); }

// An event is the work of its stream up to where it was recorded.
struct FakeEvent {
  std::shared_ptr<bool> done = std::make_shared<bool>(true);
  Queue* queue = nullptr;
};
FakeEvent* event_of(cudaEvent_t event) { return reinterpret_cast<FakeEvent*>(event); }

// Runs the stream until the event has happened.
void reach(Queue* queue, const std::shared_ptr<bool>& done) {
  while (!*done) {
    if (queue->work.empty()) std::abort();
    const Work next = std::move(queue->work.front());
    queue->work.pop_front();
    next();
  }
}

// Copies until one is to be spoilt; 0: none.
unsigned copies_to_spoilt_one = 0;

}  // namespace

void put(cudaStream_t stream, std::function<void()> work) {
  Device::get().put(queue_of(stream), std::move(work));
}

namespace {
constexpr uint32_t kSharedMax = 227 << 10;
constexpr uint32_t kSharedUnasked = 48 << 10;
std::map<const void*, uint32_t> shared_allowed;
}  // namespace

void allow_shared(const void* kernel, uint32_t bytes) {
  const std::lock_guard lock(Device::get().mutex);
  if (bytes > kSharedMax) {
    throw std::logic_error("a kernel is allowed " + std::to_string(bytes) +
                           " bytes of shared memory: there are " + std::to_string(kSharedMax));
  }
  shared_allowed[kernel] = bytes;
}

void require_shared(const void* kernel, uint32_t bytes) {
  const std::lock_guard lock(Device::get().mutex);
  const auto allowed = shared_allowed.find(kernel);
  const uint32_t most = allowed == shared_allowed.end() ? kSharedUnasked : allowed->second;
  if (bytes > most) {
    throw std::logic_error("a launch with " + std::to_string(bytes) +
                           " bytes of shared memory of a kernel that is allowed " +
                           std::to_string(most));
  }
}

void spoil_copy(unsigned number) { copies_to_spoilt_one = number + 1; }
bool is_spoilt_copy() { return copies_to_spoilt_one != 0 && --copies_to_spoilt_one == 0; }

}  // namespace blindfuse::fake_cuda

using blindfuse::fake_cuda::Device;
using blindfuse::fake_cuda::event_of;
using blindfuse::fake_cuda::FakeEvent;
using blindfuse::fake_cuda::put;
using blindfuse::fake_cuda::queue_of;
using blindfuse::fake_cuda::reach;

// The functions that the engine calls, as cuda_runtime_api.h declares them.
extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  if (attribute == cudaDevAttrComputeCapabilityMajor) {
    *value = 9;
  } else if (attribute == cudaDevAttrMultiProcessorCount) {
    *value = blindfuse::fake_cuda::kProcessors;
  } else {
    return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::strcpy(properties->name, "emulator");
  properties->major = 9;
  properties->minor = 0;
  properties->multiProcessorCount = blindfuse::fake_cuda::kProcessors;
  properties->totalGlobalMem = blindfuse::fake_cuda::kDeviceBytes;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorName(cudaError_t) { return "cudaErrorOfTheEmulator"; }
const char* cudaGetErrorString(cudaError_t) { return "an error of the emulator"; }

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  *memory = Device::get().allocate(bytes);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  if (memory != nullptr) Device::get().free(memory);
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** memory, size_t bytes) { return cudaMalloc(memory, bytes); }
cudaError_t cudaFreeHost(void* memory) { return cudaFree(memory); }
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = Device::get().free_bytes();
  *total = blindfuse::fake_cuda::kDeviceBytes;
  return cudaSuccess;
}
// On the default stream, which non-blocking ones do not wait for: done when the device is waited
// for, at the latest, and at once here.
cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  std::memset(memory, value, bytes);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = reinterpret_cast<cudaStream_t>(Device::get().add_queue());
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (stream != nullptr) Device::get().remove_queue(queue_of(stream));
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  Device::get().finish(queue_of(stream));
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  Device::get().finish_all();
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  put(stream, [=, is_spoilt = blindfuse::fake_cuda::is_spoilt_copy()] {
    std::memcpy(to, from, bytes);
    if (is_spoilt) *static_cast<char*>(to) ^= 1;
  });
  return cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind, cudaStream_t stream) {
  if (width > to_pitch || width > from_pitch) return cudaErrorInvalidValue;
  put(stream, [=, is_spoilt = blindfuse::fake_cuda::is_spoilt_copy()] {
    for (size_t i = 0; i < height; ++i) {
      std::memcpy(static_cast<char*>(to) + i * to_pitch,
                  static_cast<const char*>(from) + i * from_pitch, width);
    }
    if (is_spoilt) *static_cast<char*>(to) ^= 1;
  });
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  put(stream, [=] { std::memset(memory, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new FakeEvent);
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event_of(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  FakeEvent* fake = event_of(event);
  const auto done = std::make_shared<bool>(false);
  *fake = {done, queue_of(stream)};
  put(stream, [done] { *done = true; });
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const std::lock_guard lock(Device::get().mutex);
  const FakeEvent fake = *event_of(event);
  reach(fake.queue, fake.done);
  return cudaSuccess;
}
// Of the event as it is now, whenever it is recorded again.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  put(stream, [fake = *event_of(event)] { reach(fake.queue, fake.done); });
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 1;
  return cudaSuccess;
}

}  // extern "C"
