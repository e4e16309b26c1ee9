// The product on a GPU: the matrix in the device's memory, many clients' queries in one scan.
//
// Plain C++ outside; nothing of CUDA is needed to use it.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "src/engine/engine.h"
#include "src/engine/engine_maker.h"
#include "src/engine/kernel_record.h"

namespace blindfuse {

// kernel: one of cuda_kernel_names(), or "" for the fastest by the size of the batch. record: which
// kernels may be used. Throws UsageError for a kernel or a device that is not there; ResourceError
// when the device cannot be used now, and, with the bytes needed and those free, when its memory
// cannot hold the matrix, two batches, and the packing tables.
std::unique_ptr<Engine> make_cuda_engine(std::string_view kernel, int device,
                                         std::shared_ptr<const KernelRecord> record,
                                         uint64_t row_count, uint64_t column_count,
                                         const ServingNeeds& needs = {});

}  // namespace blindfuse
