#include "cuda/device/memory.h"

#include <string>

#include "src/base/errors.h"

namespace blindfuse {

uint64_t require_room(uint64_t bytes, const char* what, const char* advice) {
  size_t free = 0, total = 0;
  BLINDFUSE_CUDA(cudaMemGetInfo(&free, &total));
  if (bytes <= free) return bytes;
  int device = 0;
  BLINDFUSE_CUDA(cudaGetDevice(&device));
  throw ResourceError(std::string(what) + " need " + std::to_string(bytes) +
                      " bytes of memory; CUDA device " + std::to_string(device) + " has " +
                      std::to_string(free) + " free of " + std::to_string(total) + "; " + advice);
}

}  // namespace blindfuse
