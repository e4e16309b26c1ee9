// What the stand-in for the CUDA runtime has beside CUDA's own functions.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>

namespace blindfuse::fake_cuda {

// Puts work into a stream, as a kernel's launch does.
void put(cudaStream_t stream, std::function<void()> work);

// CUDA C++ Programming Guide, "Compute capabilities": a block has up to 48 KB of shared memory, and
// more, up to 227 KB with compute capability 9.0, only when the kernel is allowed it. A
// std::logic_error for a launch with more, or for more than there is.
void allow_shared(const void* kernel, uint32_t bytes);
void require_shared(const void* kernel, uint32_t bytes);

// Alters the first byte of what one of the next cudaMemcpyAsync() and cudaMemcpy2DAsync() brings: 0
// is the next.
void spoil_copy(unsigned number);

}  // namespace blindfuse::fake_cuda
