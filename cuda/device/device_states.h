// The states of a machine in which its devices cannot be used, and the operator's cure for each.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace blindfuse {

// "" for an error that is none of these: the device has failed. The meanings are those of
// cudaError_t in CUDA's driver_types.h.
std::string advice_on(cudaError_t status);

// The CUDA version that the driver supports: 1000 times the major number plus 10 times the minor
// number. 0 if there is no driver.
int cuda_driver_version();
// 13000 is "13.0".
std::string cuda_version_text(int version);

}  // namespace blindfuse
