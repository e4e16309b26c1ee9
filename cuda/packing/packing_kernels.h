// Starts the kernels that pack responses. Functions with a stream return at once, and their work is
// done in the stream's order.
//
// All addresses are the device's.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/packing/kernels/packing_args.h"
#include "cuda/scan/kernel_kinds.h"

namespace blindfuse {

// The same as load_scan_kernels(), for these kernels.
void load_packing_kernels();

// group_count groups of 16 points.
void start_cut_table(const CutTableArgs& args, uint32_t group_count, cudaStream_t stream);
void start_cut_keys(const CutKeysArgs& args, uint32_t query_count, cudaStream_t stream);
// The kernel that sums for queries whose products `scan` computes: dp4a, mma or wgmma. Kernels that
// are there to compare with have no sums: mma takes their place, and wgmma that of wgmma-tma.
ScanKernel sum_kernel_for(ScanKernel scan);
// Adds the sums at the points of a half by one of these kernels, whose order the limbs have. The
// columns are a multiple of 256, 64 points, as those of whole packs are.
void start_sums(ScanKernel kernel, const SumArgs& args, cudaStream_t stream);
void start_finish_packs(const FinishArgs& args, uint32_t query_count, cudaStream_t stream);

}  // namespace blindfuse
