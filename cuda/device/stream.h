// A queue of work for the device, and events in it for which the host can wait.
#pragma once

#include <cuda_runtime_api.h>

#include "cuda/device/check.h"

namespace blindfuse {

class Stream {
 public:
  Stream() { BLINDFUSE_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  // Waits for its work, so that the memory that it uses may be released. Does nothing if the device
  // is lost.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  cudaStream_t get() const { return stream_; }
  void wait() const { BLINDFUSE_CUDA(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { BLINDFUSE_CUDA(cudaEventCreateWithFlags(&event_, kFlags)); }
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Records the event after all work that is in the stream now. One thread at a time records and
  // waits.
  void record(cudaStream_t stream) { BLINDFUSE_CUDA(cudaEventRecord(event_, stream)); }
  void record(const Stream& stream) { record(stream.get()); }
  // Waits until all work before the event is done. Returns at once if it was never recorded.
  void wait() const { BLINDFUSE_CUDA(cudaEventSynchronize(event_)); }
  // Makes the stream continue only after the event.
  void hold(cudaStream_t stream) const { BLINDFUSE_CUDA(cudaStreamWaitEvent(stream, event_, 0)); }
  void hold(const Stream& stream) const { hold(stream.get()); }

 private:
  // Waiting threads sleep, since a server's processors have other work.
  static constexpr unsigned kFlags = cudaEventDisableTiming | cudaEventBlockingSync;

  cudaEvent_t event_ = nullptr;
};

}  // namespace blindfuse
