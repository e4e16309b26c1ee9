// Memory of the device, and memory of the host that the device can read directly.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>
#include <utility>

#include "cuda/device/check.h"

namespace blindfuse {

// Throws ResourceError if the current device has no room for this many bytes of `what`. The message
// has the bytes needed, those free, and the advice. Returns the bytes.
uint64_t require_room(uint64_t bytes, const char* what, const char* advice);

// The memory of the device that CUDA itself may take for our work: its granules of memory, the
// temporary memory of its algorithms, and the code of kernels.
constexpr uint64_t kCudaItselfBytes = uint64_t{64} << 20;

// Memory of the current device, and pinned pages of the host. Throw ResourceError if there is not
// enough. The message says whose memory is short, and the cure. Not for 0 bytes.
void* allocate_on_device(uint64_t bytes);
void* allocate_pinned(uint64_t bytes);
// Release it, or leave it if the device is lost (cuda/device/device_loss.h).
void free_on_device(void* memory) noexcept;
void free_pinned(void* memory) noexcept;

// `count` values on the device that is current when it is made. All bytes are zero at first.
template <typename T>
class DeviceMemory {
 public:
  DeviceMemory() = default;
  // Delegates to the constructor above, so that an exception here frees the memory.
  explicit DeviceMemory(uint64_t count) : DeviceMemory() {
    count_ = count;
    if (count == 0) return;
    data_ = static_cast<T*>(allocate_on_device(count * sizeof(T)));
    BLINDFUSE_CUDA(cudaMemset(data_, 0, count * sizeof(T)));
  }
  ~DeviceMemory() { free_on_device(data_); }
  DeviceMemory(DeviceMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }

  T* data() const { return data_; }
  uint64_t size() const { return count_; }

 private:
  T* data_ = nullptr;
  uint64_t count_ = 0;
};

// `count` values in pinned pages of the host, not cleared.
template <typename T>
class PinnedMemory {
 public:
  PinnedMemory() = default;
  explicit PinnedMemory(uint64_t count) : count_(count) {
    if (count == 0) return;
    data_ = static_cast<T*>(allocate_pinned(count * sizeof(T)));
  }
  ~PinnedMemory() { free_pinned(data_); }
  PinnedMemory(PinnedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  PinnedMemory& operator=(PinnedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }

  T* data() const { return data_; }
  uint64_t size() const { return count_; }
  std::span<T> span() const { return {data_, count_}; }

 private:
  T* data_ = nullptr;
  uint64_t count_ = 0;
};

}  // namespace blindfuse
