// Starts the kernels that make packing tables. All functions return at once, and their work is done
// in the stream's order. All addresses are the device's.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/packing/kernels/table_args.h"
#include "cuda/scan/kernels/scan_args.h"

namespace blindfuse {

// The same as load_scan_kernels(), for these kernels.
void load_table_kernels();

// The limbs of 2048 queries, one for each coefficient of hint polynomials; blocks: a public
// polynomial's 2048 words for each 2048 rows of limbs.pitch.
void start_cut_public_rows(const uint32_t* blocks, const Limbs& limbs, cudaStream_t stream);
// Exchanges rows and columns of the squares of packs, as far as the first row_count rows, 1 ..
// 1024, become columns, and those columns rows.
void start_transpose(uint32_t* squares, uint32_t row_count, uint32_t pack_count,
                     cudaStream_t stream);
void start_traces(const TraceArgs& args, uint32_t pack_count, cudaStream_t stream);
void start_tables(const TableArgs& args, uint32_t pack_count, cudaStream_t stream);

}  // namespace blindfuse
