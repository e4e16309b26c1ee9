#include "cuda/packing/packing_kernels.h"

#include "cuda/device/launch.cuh"
#include "cuda/packing/kernels/cut_keys.cuh"
#include "cuda/packing/kernels/cut_table.cuh"
#include "cuda/packing/kernels/finish_packs.cuh"
#include "cuda/packing/kernels/sum_points.cuh"

namespace blindfuse {
namespace {

// By query tiles and pack tiles.
constexpr const char* kSumNames[2][2] = {{"sum_points<1, 1>", "sum_points<1, 2>"},
                                         {"sum_points<2, 1>", "sum_points<2, 2>"}};

template <uint32_t kQueryTiles, uint32_t kPackTiles>
void start_sum_tiles(const SumArgs& args, uint32_t tiles, uint32_t set_count, cudaStream_t stream) {
  constexpr uint32_t kQueries = kQueryTiles * kQueriesInTile;
  constexpr uint32_t kSharedBytes = sum_shared_bytes<kQueryTiles, kPackTiles>();
  const auto kernel = sum_points<kQueryTiles, kPackTiles>;
  allow_shared(kernel, kSharedBytes);
  const dim3 grid((args.query_count + kQueries - 1) / kQueries, tiles / kPackTiles, set_count);
  launch_kernel(kSumNames[kQueryTiles - 1][kPackTiles - 1], kernel, grid, kSumThreads, kSharedBytes,
                stream, args);
}

// Two tiles of packs at a time, and the last one by itself where their number is odd.
template <uint32_t kQueryTiles>
void start_sum_pairs(SumArgs args, uint32_t set_count, cudaStream_t stream) {
  const uint32_t tiles = pack_tiles(args.pack_count);
  if (tiles >= 2) start_sum_tiles<kQueryTiles, 2>(args, tiles, set_count, stream);
  if (tiles % 2 == 0) return;
  args.first_tile = tiles - 1;
  start_sum_tiles<kQueryTiles, 1>(args, 1, set_count, stream);
}

}  // namespace

void load_packing_kernels() {
  load_kernel(cut_table);
  load_kernel(cut_keys);
  load_kernel(sum_points<1, 1>);
  load_kernel(sum_points<1, 2>);
  load_kernel(sum_points<2, 1>);
  load_kernel(sum_points<2, 2>);
  load_kernel(finish_packs);
}

void start_cut_table(const CutTableArgs& args, uint32_t group_count, cudaStream_t stream) {
  launch_kernel("cut_table", cut_table, dim3(kSumSteps / kStepsInBlock, group_count),
                kCutTableThreads, 0, stream, args);
}

void start_cut_keys(const CutKeysArgs& args, uint32_t query_count, cudaStream_t stream) {
  launch_kernel("cut_keys", cut_keys, dim3(2 * ring::kDigits, query_count), kCutKeysThreads, 0,
                stream, args);
}

void start_sum_points(const SumArgs& args, uint32_t set_count, cudaStream_t stream) {
  if (args.query_count <= kQueriesInTile) return start_sum_pairs<1>(args, set_count, stream);
  start_sum_pairs<2>(args, set_count, stream);
}

void start_finish_packs(const FinishArgs& args, uint32_t query_count, cudaStream_t stream) {
  launch_kernel("finish_packs", finish_packs, dim3(args.pack_count, query_count), kNttThreads,
                kFinishSharedBytes, stream, args);
}

}  // namespace blindfuse
