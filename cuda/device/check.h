// Turns errors of the CUDA runtime into exceptions. No error is ignored.
#pragma once

#include <string>

#include <cuda_runtime_api.h>

#include "cuda/device/device_call.h"

namespace blindfuse {

// Throws ResourceError if memory is short, and DeviceLostError for any other error. After most
// errors the context is unusable, and after the others our arguments cannot be trusted. The message
// has the call, its file and line.
void check_cuda(cudaError_t status, const char* call, const char* file, int line);

// Throws as check_cuda() does where the device is lost, and ResourceError otherwise. For
// std::bad_alloc from Thrust, which throws that for every error of cudaMalloc
// (thrust/system/cuda/detail/malloc_and_free.h of CCCL 3.0), and so where a kernel has failed
// before. what: was to have the memory; why: as the library says it.
[[noreturn]] void throw_no_room(const std::string& what, const std::string& why);

}  // namespace blindfuse

// Each call is watched while it is under way. The second one may start the driver, or load code.
#define BLINDFUSE_CUDA(call) \
  ::blindfuse::check_cuda((::blindfuse::DeviceCall(#call), (call)), #call, __FILE__, __LINE__)
#define BLINDFUSE_CUDA_START(call)                                                         \
  ::blindfuse::check_cuda(                                                                 \
      (::blindfuse::DeviceCall(#call, ::blindfuse::kDriverStartAllowance), (call)), #call, \
      __FILE__, __LINE__)
