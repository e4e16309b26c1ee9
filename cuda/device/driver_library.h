// Finds NVIDIA's driver without a call to it.
#pragma once

namespace blindfuse {

// True if the driver's library for programs, libcuda.so.1, can be loaded. Initializes nothing, and
// makes no call of CUDA.
bool is_cuda_driver_installed();

}  // namespace blindfuse
