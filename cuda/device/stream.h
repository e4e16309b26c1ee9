// A queue of work for the device, and points in it to wait for.
#pragma once

#include <cuda_runtime_api.h>

#include "cuda/device/check.h"

namespace blindfuse {

class Stream {
 public:
  Stream() { BLINDFUSE_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  // Through with its work: the memory that it uses may go now.
  ~Stream() {
    (void)cudaStreamSynchronize(stream_);
    (void)cudaStreamDestroy(stream_);
  }
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
  ~Event() { (void)cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Behind all that is in the stream now.
  void record(cudaStream_t stream) const { BLINDFUSE_CUDA(cudaEventRecord(event_, stream)); }
  void record(const Stream& stream) const { record(stream.get()); }
  // Until all before it is done; at once when it was never recorded.
  void wait() const { BLINDFUSE_CUDA(cudaEventSynchronize(event_)); }
  // The stream goes on behind it.
  void hold(cudaStream_t stream) const { BLINDFUSE_CUDA(cudaStreamWaitEvent(stream, event_, 0)); }
  void hold(const Stream& stream) const { hold(stream.get()); }

 private:
  // Whoever waits sleeps: a server's processors have other things to do.
  static constexpr unsigned kFlags = cudaEventDisableTiming | cudaEventBlockingSync;

  cudaEvent_t event_ = nullptr;
};

}  // namespace blindfuse
