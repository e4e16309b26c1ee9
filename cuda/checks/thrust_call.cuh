// Calls of Thrust in a stream, and its errors as this project's.
#pragma once

#include <cuda_runtime_api.h>
#include <thrust/execution_policy.h>
#include <thrust/system_error.h>

#include <new>

#include "cuda/device/check.h"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same code on the CPU.
namespace {

// Thrust computes on the device or, in the tests without one, on the processor.
#if THRUST_DEVICE_SYSTEM == THRUST_DEVICE_SYSTEM_CUDA
auto policy_of(cudaStream_t stream) { return thrust::cuda::par.on(stream); }
#else
auto policy_of(cudaStream_t stream) {
  BLINDFUSE_CUDA(cudaStreamSynchronize(stream));
  return thrust::device;
}
#endif

// Returns what `call` does. Throws as check_cuda() does; ResourceError, naming `what`, when the
// device has no memory for Thrust's temporaries.
template <typename Call>
auto call_thrust(const char* what, const Call& call) {
  const DeviceCall watched(what);
  try {
    return call();
  } catch (const thrust::system_error& error) {
    check_cuda(static_cast<cudaError_t>(error.code().value()), error.what(), __FILE__, __LINE__);
    throw;
  } catch (const std::bad_alloc& error) {
    throw_no_room(what, error.what());
  }
}

}  // namespace
}  // namespace blindfuse
