#include "cuda/device/check.h"

#include <cstddef>
#include <string>

#include <cuda_runtime_api.h>

#include "cuda/device/device_loss.h"
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
  lose_device(message);
}

void throw_no_room(const std::string& what, const std::string& why) {
  // A device that is lost returns its error from every call.
  size_t free = 0, total = 0;
  BLINDFUSE_CUDA(cudaMemGetInfo(&free, &total));
  throw ResourceError("no room for " + what + " on the device: " + why);
}

}  // namespace blindfuse
