#include "cuda/packing/packing_kernels.h"

#include "cuda/device/launch.cuh"
#include "cuda/packing/kernels/cut_keys.cuh"
#include "cuda/packing/kernels/cut_table.cuh"
#include "cuda/packing/kernels/finish_packs.cuh"
#include "cuda/packing/kernels/sum_points.cuh"

namespace blindfuse {
namespace {

template <uint32_t kQueryTiles, uint32_t kPackTiles>
void start_sum_tiles(const SumTask& task, uint32_t tiles, uint32_t set_count, cudaStream_t stream) {
  constexpr uint32_t kQueries = kQueryTiles * kQueriesInTile;
  constexpr uint32_t kSharedBytes = sum_shared_bytes<kQueryTiles, kPackTiles>();
  const auto kernel = sum_points<kQueryTiles, kPackTiles>;
  allow_shared(kernel, kSharedBytes);
  const dim3 grid((task.query_count + kQueries - 1) / kQueries, tiles / kPackTiles, set_count);
  launch_kernel(kernel, grid, kSumThreads, kSharedBytes, stream, task);
}

// Two tiles of packs at a time, and the last one by itself where their number is odd.
template <uint32_t kQueryTiles>
void start_sum_pairs(SumTask task, uint32_t set_count, cudaStream_t stream) {
  const uint32_t tiles = pack_tiles(task.pack_count);
  if (tiles >= 2) start_sum_tiles<kQueryTiles, 2>(task, tiles, set_count, stream);
  if (tiles % 2 == 0) return;
  task.first_tile = tiles - 1;
  start_sum_tiles<kQueryTiles, 1>(task, 1, set_count, stream);
}

}  // namespace

void start_cut_table(const TableCut& task, uint32_t group_count, cudaStream_t stream) {
  launch_kernel(cut_table, dim3(kSumSteps / kStepsInBlock, group_count), kCutTableThreads, 0,
                stream, task);
}

void start_cut_keys(const KeyCut& task, uint32_t query_count, cudaStream_t stream) {
  launch_kernel(cut_keys, dim3(2 * ring::kDigits, query_count), kCutKeysThreads, 0, stream, task);
}

void start_sum_points(const SumTask& task, uint32_t set_count, cudaStream_t stream) {
  if (task.query_count <= kQueriesInTile) return start_sum_pairs<1>(task, set_count, stream);
  start_sum_pairs<2>(task, set_count, stream);
}

void start_finish_packs(const FinishTask& task, uint32_t query_count, cudaStream_t stream) {
  launch_kernel(finish_packs, dim3(task.pack_count, query_count), kRingThreads, kFinishSharedBytes,
                stream, task);
}

}  // namespace blindfuse
