#include "cuda/packing/second_level_kernels.h"

#include <algorithm>

#include "cuda/device/launch.cuh"
#include "cuda/packing/kernels/second_chains.cuh"
#include "cuda/packing/kernels/second_products.cuh"
#include "cuda/packing/kernels/second_traces.cuh"
#include "cuda/packing/table_kernels.h"

namespace blindfuse {

void load_second_level_kernels() {
  load_table_kernels();  // of which transpose_squares is one
  load_kernel(second_column_values);
  load_kernel(second_traces);
  load_kernel(second_products);
  load_kernel(second_chains);
}

void start_second_level(const SecondLevelArgs& args, uint32_t query_count, cudaStream_t stream) {
  if (query_count == 0 || args.column_count == 0) return;
  const uint32_t packs = args.pack_count * query_count;
  launch_kernel("second_column_values", second_column_values, dim3(args.column_count, query_count),
                kNttThreads, kRowSharedBytes, stream, args);
  start_transpose(args.squares, std::min(args.column_count, kOrbitWords), packs, stream);
  launch_kernel("second_traces", second_traces, dim3(kOrbitWords, packs), kNttThreads,
                kRowSharedBytes, stream, args);
  launch_kernel("second_products", second_products,
                dim3((args.column_count + kProductColumns - 1) / kProductColumns, query_count),
                kProductThreads, kProductSharedBytes, stream, args);
  launch_kernel("second_chains", second_chains, dim3(args.pack_count, query_count), kNttThreads,
                kKeySwitchSharedBytes, stream, args);
}

}  // namespace blindfuse
