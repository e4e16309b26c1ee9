// Makes engines on a GPU. This header is plain C++: its users need nothing of CUDA.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/engine/engine_maker.h"

namespace blindfuse {

// kernels: those of cuda_kernel_names() that engines may use; none: all. Throws UsageError if there
// is no such kernel or device, and ResourceError for one that the machine may have later
// (cuda/device/device_info.h). Its engines have their matrix on that device.
std::unique_ptr<EngineMaker> make_cuda_engine_maker(std::vector<std::string> kernels, int device);

// Loads the code of all kernels for the scan to the device, and of those of this part of the
// engine, "packing" or "tables"; "" for none. If the device is newer than the program, the driver
// compiles the code. Throws the errors of make_cuda_engine_maker.
void load_cuda_kernels(int device, std::string_view part);

// The names that --engine takes after "cuda:" on this machine, which has a device.
std::vector<std::string_view> cuda_kernel_names();

}  // namespace blindfuse
