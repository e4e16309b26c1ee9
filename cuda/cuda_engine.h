// The product on a GPU: the matrix in the device's memory, many clients' queries in one scan.
//
// Plain C++ outside; nothing of CUDA is needed to use it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/engine.h"

namespace blindfuse {

// "" when this device can be used; otherwise why not.
std::string why_no_cuda_device(int device);

// What --engine takes behind "cuda:" on this machine.
std::vector<std::string_view> cuda_kernel_names();

// kernel: one of cuda_kernel_names(), or "" for the fastest by the size of the batch. Throws
// BadInput for a kernel or a device that is not there; EngineTrouble, with the bytes needed and
// those free, when the device's memory cannot hold the matrix and a batch.
std::unique_ptr<Engine> make_cuda_engine(std::string_view kernel, int device, uint64_t row_count,
                                         uint64_t column_count);

// "NVIDIA H200, compute capability 9.0, 132 multiprocessors, 141 GB"
std::string cuda_device_name(int device);

}  // namespace blindfuse
