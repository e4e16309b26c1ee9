// The product on a GPU: the matrix in the device's memory, many clients' queries in one scan.
//
// Plain C++ outside; nothing of CUDA is needed to use it.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "cuda/scan/calibrations.h"
#include "src/engine/engine.h"
#include "src/engine/kernel_record.h"

namespace blindfuse {

// kernel: one of cuda_kernel_names(), or "" for the fastest by the size of the batch. record: which
// kernels may be used. calibrations: what was measured on this device. Throws UsageError for a kernel or a device that is not there; ResourceError,
// with the bytes needed and those free, when the device's memory cannot hold the matrix and a
// batch.
std::unique_ptr<Engine> make_cuda_engine(
    std::string_view kernel, int device, std::shared_ptr<KernelRecord> record, uint64_t row_count,
    uint64_t column_count,
    std::shared_ptr<Calibrations> calibrations = std::make_shared<Calibrations>());

}  // namespace blindfuse
