#include "cuda/device/memory.h"

#include <string>

#include "cuda/device/device_loss.h"
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

void* allocate_on_device(uint64_t bytes) {
  void* memory = nullptr;
  const DeviceCall call("cudaMalloc");
  const cudaError_t status = cudaMalloc(&memory, bytes);
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();  // this one does not stay
    throw ResourceError("the device has no " + std::to_string(bytes) +
                        " bytes of memory left (cudaMalloc); nvidia-smi lists the processes that "
                        "have memory of it");
  }
  BLINDFUSE_CUDA(status);
  return memory;
}

void* allocate_pinned(uint64_t bytes) {
  void* memory = nullptr;
  const DeviceCall call("cudaMallocHost");
  const cudaError_t status = cudaMallocHost(&memory, bytes);
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();  // this one does not stay
    throw ResourceError("the host has no " + std::to_string(bytes) +
                        " bytes of memory for the device to read by itself (cudaMallocHost): raise "
                        "the limit on locked memory (ulimit -l, LimitMEMLOCK=infinity) or on "
                        "memory (MemoryMax=, --memory)");
  }
  BLINDFUSE_CUDA(status);
  return memory;
}

void free_on_device(void* memory) noexcept {
  const DeviceCall call("cudaFree");
  if (memory != nullptr && !is_device_lost()) (void)cudaFree(memory);
}

void free_pinned(void* memory) noexcept {
  const DeviceCall call("cudaFreeHost");
  if (memory != nullptr && !is_device_lost()) (void)cudaFreeHost(memory);
}

}  // namespace blindfuse
