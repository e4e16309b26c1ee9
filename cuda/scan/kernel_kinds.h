// The kernels that multiply a batch of queries with the matrix: their names, and their
// requirements.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cuda/scan/kernels/scan_args.h"

namespace blindfuse {

enum class ScanKernel { kDp4a, kMma, kWgmma, kWgmmaTma };

std::string_view name_of(ScanKernel kernel);

// The kernels that the current device can run.
std::vector<std::string_view> scan_kernel_names();

// The kernel of this name. Throws UsageError if there is no such kernel, or if the current device
// cannot run it.
ScanKernel scan_kernel_named(std::string_view name);

// The order in which a kernel takes its limbs.
LimbOrder limb_order_of(ScanKernel kernel);

}  // namespace blindfuse
