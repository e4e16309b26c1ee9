// Turns errors of the CUDA runtime into exceptions. No error is ignored.
#pragma once

#include <cuda_runtime_api.h>

namespace blindfuse {

// Throws ResourceError if memory is short, and DeviceLostError for any other error. After most
// errors the context is unusable, and after the others our arguments cannot be trusted. The message
// has the call, its file and line, and the work that was running.
void check_cuda(cudaError_t status, const char* call, const char* file, int line);
// The same for the launch of a kernel, which is noted (cuda/device/launch_trail.h).
void check_launch(cudaError_t status, const char* kernel, cudaStream_t stream, const char* file,
                  int line);

}  // namespace blindfuse

#define BLINDFUSE_CUDA(call) ::blindfuse::check_cuda((call), #call, __FILE__, __LINE__)
