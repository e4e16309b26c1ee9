// Whether NVIDIA's driver is installed, without a call to the driver.
#pragma once

namespace blindfuse {

// Whether the driver's library for programs, libcuda.so.1, can be loaded. Initializes nothing, and
// makes no call of CUDA.
bool is_cuda_driver_installed();

}  // namespace blindfuse
