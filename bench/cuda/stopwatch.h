// The time that work takes on the device, by its own clock.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda/device/check.h"
#include "cuda/device/memory.h"
#include "cuda/device/stream.h"

namespace blindfuse::bench {

// *folded ^= every 4 bytes of this many bytes, a multiple of 16 that is aligned to 16. Returns at
// once.
void start_read_all(const void* bytes, uint64_t byte_count, uint32_t* folded, cudaStream_t stream);

// The upper one of two, as in bench/engine.cpp.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Napkin: to start a kernel takes the host some 10 us, a scan of 1.2 GB takes a device with 4.8
// TB/s 250 us. On an idle device the host's part would count, 4 %; after 256 MiB to read, 56 us at
// least, it is over before the clock begins. What the caches held is gone then, too, and nothing in
// them is left to be written.
class Stopwatch {
 public:
  // Times work on the current device.
  explicit Stopwatch(uint64_t lead_in_bytes = uint64_t{256} << 20)
      : lead_in_(lead_in_bytes), folded_(1) {
    BLINDFUSE_CUDA(cudaEventCreate(&begin_.event));
    BLINDFUSE_CUDA(cudaEventCreate(&end_.event));
    BLINDFUSE_CUDA(cudaDeviceSynchronize());
  }

  // Returns the seconds from the beginning to the end of the work that `start` puts into the
  // stream, after it is done.
  template <typename Start>
  double seconds(const Stream& stream, const Start& start) {
    start_read_all(lead_in_.data(), lead_in_.size(), folded_.data(), stream.get());
    BLINDFUSE_CUDA(cudaEventRecord(begin_.event, stream.get()));
    start();
    BLINDFUSE_CUDA(cudaEventRecord(end_.event, stream.get()));
    BLINDFUSE_CUDA(cudaEventSynchronize(end_.event));
    float milliseconds = 0;
    BLINDFUSE_CUDA(cudaEventElapsedTime(&milliseconds, begin_.event, end_.event));
    return double{milliseconds} * 1e-3;
  }

 private:
  // cuda/device/stream.h has events without a clock.
  struct TimedEvent {
    TimedEvent() = default;
    ~TimedEvent() {
      if (event != nullptr) (void)cudaEventDestroy(event);
    }
    TimedEvent(const TimedEvent&) = delete;
    TimedEvent& operator=(const TimedEvent&) = delete;

    cudaEvent_t event = nullptr;
  };

  DeviceMemory<uint8_t> lead_in_;
  DeviceMemory<uint32_t> folded_;
  TimedEvent begin_;
  TimedEvent end_;
};

}  // namespace blindfuse::bench
