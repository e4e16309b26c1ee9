// Starts the kernels that make the second level of packed responses. All addresses are the
// device's.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/packing/kernels/second_level_args.h"

namespace blindfuse {

// The same as load_scan_kernels(), for these kernels.
void load_second_level_kernels();

// From the first level's responses and the queries to the second level's responses. Returns at
// once, and its work is done in the stream's order.
void start_second_level(const SecondLevelArgs& args, uint32_t query_count, cudaStream_t stream);

}  // namespace blindfuse
