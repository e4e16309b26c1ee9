// Starts a kernel. tests/cuda/emulator.h has the same for the CPU, and stands in for this file
// there.
#ifndef BLINDFUSE_CUDA_LAUNCH_CUH
#define BLINDFUSE_CUDA_LAUNCH_CUH

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/device/check.h"

namespace blindfuse {

// name: the kernel's, with its tile, for errors and tests.
template <typename Kernel, typename... Args>
void launch_kernel(const char* name, Kernel kernel, dim3 grid, uint32_t threads,
                   uint32_t shared_bytes, cudaStream_t stream, const Args&... args) {
  const DeviceCall call(name);
  kernel<<<grid, threads, shared_bytes, stream>>>(args...);
  check_cuda(cudaGetLastError(), name, __FILE__, __LINE__);
}

// Loads the kernel's code onto the current device now, and compiles it where there is only PTX.
// CUDA would otherwise do that at its first launch (CUDA Programming Guide, "Lazy Loading").
template <typename Kernel>
void load_kernel(Kernel kernel) {
  cudaFuncAttributes attributes{};
  BLINDFUSE_CUDA_START(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel)));
}

// Allows the kernel so much shared memory from now on.
template <typename Kernel>
void allow_shared(Kernel kernel, uint32_t shared_bytes) {
  BLINDFUSE_CUDA_START(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(shared_bytes)));
  // Shared memory comes first: data that is read once does not stay in the rest of the cache.
  BLINDFUSE_CUDA_START(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                            static_cast<int>(cudaSharedmemCarveoutMaxShared)));
}

// Blocks of the kernel that one multiprocessor runs at a time, with so much shared memory, which is
// allowed to it from now on.
template <typename Kernel>
uint32_t blocks_a_processor(Kernel kernel, uint32_t threads, uint32_t shared_bytes) {
  allow_shared(kernel, shared_bytes);
  int blocks = 0;
  BLINDFUSE_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &blocks, kernel, static_cast<int>(threads), shared_bytes));
  return static_cast<uint32_t>(blocks);
}

}  // namespace blindfuse

#endif
