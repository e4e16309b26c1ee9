#include "cuda/packing/table_kernels.h"

#include "cuda/device/launch.cuh"
#include "cuda/packing/kernels/key_switch_chains.cuh"
#include "cuda/packing/kernels/public_rows.cuh"
#include "cuda/packing/kernels/traces.cuh"

namespace blindfuse {

void load_table_kernels() {
  load_kernel(cut_public_rows);
  load_kernel(ntt_columns);
  load_kernel(transpose_squares);
  load_kernel(ntt_and_rotate_rows);
  load_kernel(key_switch_down);
}

void start_cut_public_rows(const uint32_t* blocks, const Limbs& limbs, cudaStream_t stream) {
  constexpr uint64_t kThreads = 256;
  if (limbs.pitch == 0) return;
  const uint64_t row_blocks = (limbs.pitch / kRowsPerThread + kThreads - 1) / kThreads;
  launch_kernel("cut_public_rows", cut_public_rows,
                dim3(static_cast<uint32_t>(row_blocks), kRingWords),
                static_cast<uint32_t>(kThreads), 0, stream, blocks, limbs);
}

void start_transpose(uint32_t* squares, uint32_t row_count, uint32_t pack_count,
                     cudaStream_t stream) {
  launch_kernel("transpose_squares", transpose_squares,
                dim3((row_count + 31) / 32, kOrbitWords / 32, 2 * pack_count), kTransposeThreads,
                kTransposeSharedBytes, stream, squares);
}

void start_traces(const TraceArgs& args, uint32_t pack_count, cudaStream_t stream) {
  if (pack_count == 0) return;
  const dim3 rows(kOrbitWords, pack_count);
  launch_kernel("ntt_columns", ntt_columns, rows, kNttThreads, kRowSharedBytes, stream, args);
  start_transpose(args.squares, kOrbitWords, pack_count, stream);
  launch_kernel("ntt_and_rotate_rows", ntt_and_rotate_rows, rows, kNttThreads, kRowSharedBytes,
                stream, args);
  start_transpose(args.squares, kOrbitWords, pack_count, stream);
}

void start_tables(const TableArgs& args, uint32_t pack_count, cudaStream_t stream) {
  if (pack_count == 0) return;
  launch_kernel("key_switch_down", key_switch_down, dim3(pack_count), kNttThreads,
                kKeySwitchSharedBytes, stream, args);
}

}  // namespace blindfuse
