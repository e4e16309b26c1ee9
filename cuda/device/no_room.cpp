#include "cuda/device/no_room.h"

#include <cuda_runtime_api.h>

#include <cstddef>

#include "cuda/device/check.h"
#include "src/base/errors.h"

namespace blindfuse {

void throw_no_room(const std::string& what, const std::string& why) {
  // A device that is lost returns its error from every call.
  size_t free = 0, total = 0;
  BLINDFUSE_CUDA(cudaMemGetInfo(&free, &total));
  throw ResourceError("no room for " + what + " on the device: " + why);
}

}  // namespace blindfuse
