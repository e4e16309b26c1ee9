// Whether NVIDIA's driver is installed, without asking it anything.
#pragma once

namespace blindfuse {

// Whether its library for programs, libcuda.so.1, can be loaded. Initializes nothing, and makes no
// call of CUDA.
bool is_cuda_driver_installed();

}  // namespace blindfuse
