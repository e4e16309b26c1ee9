// The engine on a GPU. The matrix is in the device's memory, and one scan serves the queries of
// many clients.
//
// This header is plain C++: its users need nothing of CUDA.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cuda/scan/calibrations.h"
#include "src/engine/engine.h"
#include "src/engine/engine_maker.h"

namespace blindfuse {

// kernels: those of cuda_kernel_names() that it may use, the fastest of them by the size of the
// batch; none: all. calibrations: the measurements on this device. Throws UsageError
// if there is no such kernel or device. Throws ResourceError if the device cannot be used now, or
// if its memory cannot hold the matrix and the memory that is set aside. The message then has the
// bytes needed and those free.
//
// Some memory is set aside, but not allocated: CUDA's own (kCudaItselfBytes), that of the check of
// products (CheckVector::bytes_of), and the larger one of
//
//   before it serves: the memory that check_kernels() takes until it returns, or that the timing of
//   kernels takes if `calibrations` has no matrix of this size;
//   while it serves: the packing tables, two batches of needs.batch_max, and what a second level
//   takes for them (DeviceSecondLevel::bytes_of).
//
// multiply() and make_panel_products(), which a build calls, take more memory. They say so if there
// is no room.
std::unique_ptr<Engine> make_cuda_engine(
    const std::vector<std::string>& kernels, int device, uint64_t row_count, uint64_t column_count,
    const ServingNeeds& needs = {},
    std::shared_ptr<Calibrations> calibrations = std::make_shared<Calibrations>());

}  // namespace blindfuse
