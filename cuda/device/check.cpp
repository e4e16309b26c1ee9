#include "cuda/device/check.h"

#include <string>

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

}  // namespace blindfuse
