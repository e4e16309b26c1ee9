// What the stand-in for the CUDA runtime has beside CUDA's own functions.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace blindfuse::fake_cuda {

// Puts work into a stream, as a kernel's launch does.
void put(cudaStream_t stream, std::function<void()> work);

// Alters the first byte of what one of the next cudaMemcpyAsync() and cudaMemcpy2DAsync() brings: 0
// is the next.
void spoil_copy(unsigned number);

}  // namespace blindfuse::fake_cuda
