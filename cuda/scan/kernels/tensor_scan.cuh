// The common part of the kernels on tensor cores (scan_mma.cuh, scan_wgmma.cuh,
// scan_wgmma_tma.cuh): how columns and queries are shared out among blocks and warps.
//
// In all of them a lane has the bytes of the columns g, g + 8, ... of its warp (g = lane / 4).
#pragma once

#include <cstdint>

#include "cuda/scan/kernels/limbs.cuh"

namespace blindfuse {
// Every file that includes this has its own: the tests run the same kernels on the CPU.
namespace {

// Columns are shared out evenly. With as few tiles as possible, every warp of every tile has the
// same number of columns (except the last ones), and all blocks wait for memory equally.
template <uint32_t kThreads, uint32_t kWarpColumnsMax>
struct ColumnTiles {
  static constexpr uint32_t kWarps = kThreads / 32;

  static constexpr uint32_t count(uint32_t columns) {
    return (columns + kWarps * kWarpColumnsMax - 1) / (kWarps * kWarpColumnsMax);
  }
  static constexpr uint32_t warp_columns(uint32_t columns) {
    const uint32_t warps = count(columns) * kWarps;
    return (columns + warps - 1) / warps;
  }
};

// Shared memory that a block needs: kStages steps of the limbs of a tile of queries.
template <int kLimbRows, int kStages>
constexpr uint32_t limb_shared_bytes() {
  return kStages * kLimbRows * kStepRows;
}

// Restricts args to the block's tile of queries, kLimbRows / 4 of them.
template <int kLimbRows, typename Args>
__device__ __forceinline__ void take_query_tile(Args& args) {
  const uint32_t first_query = blockIdx.y * (kLimbRows / 4);
  args.limbs += static_cast<uint64_t>(blockIdx.y) * kLimbRows * args.limb_pitch;
  args.products += first_query * args.product_pitch;
  args.query_count -= first_query;
}

// The k-th column of a lane whose warp has `columns` columns from `first` on. After the last column
// the last one is read again, and not used.
template <typename Args>
__device__ __forceinline__ uint32_t column_to_read(const Args& args, uint32_t first,
                                                   uint32_t columns, uint32_t k, uint32_t lane) {
  const uint32_t of_warp = min(k * 8 + lane / 4, columns - 1);
  return min(first + of_warp, args.column_count - 1);
}

__device__ __forceinline__ uint32_t word_of(const uint4& v, int i) {
  return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

}  // namespace
}  // namespace blindfuse
