#include "cuda/device/check.h"

#include <string>

#include "cuda/device/device_loss.h"
#include "cuda/device/launch_trail.h"
#include "src/base/errors.h"

namespace blindfuse {

void check_cuda(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) return;
  const std::string message = std::string(file) + ":" + std::to_string(line) + ": " + call +
                              " failed: " + cudaGetErrorName(status) + ", " +
                              cudaGetErrorString(status);
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();  // this one does not stay
    throw ResourceError(message);
  }
  note_device_lost();
  throw DeviceLostError(message + launch_trail::text());
}

void check_launch(cudaError_t status, const char* kernel, cudaStream_t stream, const char* file,
                  int line) {
  if (status == cudaSuccess) return launch_trail::note(stream, kernel);
  check_cuda(status, (std::string("launching ") + kernel).c_str(), file, line);
}

}  // namespace blindfuse
