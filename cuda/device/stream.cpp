#include "cuda/device/stream.h"

#include "cuda/device/device_loss.h"

namespace blindfuse {

Stream::~Stream() {
  const DeviceCall call("cudaStreamDestroy");
  if (!is_device_lost()) (void)cudaStreamSynchronize(stream_);
  if (!is_device_lost()) (void)cudaStreamDestroy(stream_);
}

Event::~Event() {
  if (!is_device_lost()) (void)cudaEventDestroy(event_);
}

}  // namespace blindfuse
