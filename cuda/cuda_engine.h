// The product on a GPU: the matrix in the device's memory, many clients' queries in one scan.
//
// Plain C++ outside; nothing of CUDA is needed to use it.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "cuda/scan/calibrations.h"
#include "src/engine/engine.h"
#include "src/engine/engine_maker.h"
#include "src/engine/kernel_record.h"

namespace blindfuse {

// kernel: one of cuda_kernel_names(), or "" for the fastest by the size of the batch. record: which
// kernels may be used. calibrations: what was measured on this device. Throws UsageError for a
// kernel or a device that is not there; ResourceError when the device cannot be used now, and, with
// the bytes needed and those free, when its memory cannot hold the matrix and what is set aside.
//
// Set aside, and not allocated, is what CUDA itself takes (kCudaItselfBytes), what products are
// checked with (CheckVector::bytes_of), and the larger one of
//
//   before it serves: what check_kernels(), or the timing of kernels for a matrix of a size that
//   `calibrations` has not, takes until it returns;
//   while it serves: the packing tables, two batches of needs.batch_max, and the query of a canary,
//   which is computed in one of these batches.
//
// multiply() and make_panel_products(), which a build calls, take more, and say so when there is no
// room.
std::unique_ptr<Engine> make_cuda_engine(
    std::string_view kernel, int device, std::shared_ptr<KernelRecord> record, uint64_t row_count,
    uint64_t column_count, const ServingNeeds& needs = {},
    std::shared_ptr<Calibrations> calibrations = std::make_shared<Calibrations>());

}  // namespace blindfuse
