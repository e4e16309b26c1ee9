// The kernels that multiply a batch of queries with the matrix: their names, and their
// requirements.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cuda/scan/kernels/scan_args.h"

namespace blindfuse {

// kAuto is the fastest for the batch, and stands for mma if one kernel is meant.
enum class ScanKernel { kAuto, kDp4a, kMma, kWgmma, kWgmmaTma };

std::string_view name_of(ScanKernel kernel);

// The kernels that the current device can run.
std::vector<std::string_view> scan_kernel_names();

// The kernel of this name; kAuto for "". Throws UsageError if there is no such kernel, or if the
// current device cannot run it.
ScanKernel scan_kernel_named(std::string_view name);

// The order in which a kernel takes its limbs.
LimbOrder limb_order_of(ScanKernel kernel);

// The number of queries for which a scan of query_count queries by this kernel has room at the same
// cost: those of its tile.
uint32_t room_of(ScanKernel kernel, uint32_t query_count);

// Batches of at most `most` queries that try each tile of a kernel, the smallest first.
std::vector<uint32_t> trial_batches_of(ScanKernel kernel, uint32_t most);

}  // namespace blindfuse
