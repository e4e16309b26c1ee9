// Starts the kernels that make packing tables. Everything here returns at once, and is done in the
// stream's order; all addresses are the device's.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/kernels/table_tasks.h"

namespace blindfuse {

void start_traces(const TraceTask& task, uint32_t pack_count, cudaStream_t stream);
void start_tables(const TableTask& task, uint32_t pack_count, cudaStream_t stream);

}  // namespace blindfuse
