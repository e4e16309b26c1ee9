// Starts the kernels that pack responses. Functions with a stream return at once, and their work is
// done in the stream's order.
//
// All addresses are the device's.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/packing/kernels/packing_args.h"

namespace blindfuse {

// The same as load_scan_kernels(), for these kernels.
void load_packing_kernels();

// group_count groups of 16 points.
void start_cut_table(const CutTableArgs& args, uint32_t group_count, cudaStream_t stream);
void start_cut_keys(const CutKeysArgs& args, uint32_t query_count, cudaStream_t stream);
// Computes the sums of all packs, with args.first_tile 0, at the points of this many sets.
void start_sum_points(const SumArgs& args, uint32_t set_count, cudaStream_t stream);
void start_finish_packs(const FinishArgs& args, uint32_t query_count, cudaStream_t stream);

}  // namespace blindfuse
