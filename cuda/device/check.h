// What the CUDA runtime reports, as exceptions. No failure is swallowed.
#pragma once

#include <cuda_runtime_api.h>

namespace blindfuse {

// Throws ResourceError when memory is short, DeviceLostError for anything else: after most failures
// the context is of no use, and after the others it is our arguments that cannot be trusted. The
// message has call, file and line, and what was running.
void check_cuda(cudaError_t status, const char* call, const char* file, int line);
// The same for the launch of a kernel, which is noted (cuda/device/launch_trail.h).
void check_launch(cudaError_t status, const char* kernel, cudaStream_t stream, const char* file,
                  int line);

}  // namespace blindfuse

#define BLINDFUSE_CUDA(call) ::blindfuse::check_cuda((call), #call, __FILE__, __LINE__)
