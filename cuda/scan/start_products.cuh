// Starts the kernels of a product, for files that compile them with an epilogue
// (cuda/scan/kernels/word_products.cuh) of their own.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "cuda/device/check.h"
#include "cuda/device/device_info.h"
#include "cuda/device/launch.cuh"
#include "cuda/scan/kernels/scan_dp4a.cuh"
#include "cuda/scan/kernels/scan_mma.cuh"
#include "cuda/scan/kernels/scan_wgmma.cuh"
#include "cuda/scan/scan_kernels.h"

namespace blindfuse {
// Every file that includes this has its own, as with kernels.
namespace {

// The kernels' names, for errors and tests: by queries, and by limb rows of a tile.
struct ProductNames {
  const char* dp4a[kScanDp4aQueriesMax];
  const char* mma[kMmaTileQueries.size()];
  const char* wgmma[kWgmmaTileQueries.size()];
};

constexpr uint32_t blocks_for(uint64_t threads, uint32_t each) {
  return static_cast<uint32_t>((threads + each - 1) / each);
}

inline int current_device() {
  int device = 0;
  BLINDFUSE_CUDA(cudaGetDevice(&device));
  return device;
}

// Blocks of the kernel that the current device runs at a time, at least one, with so much shared
// memory, which is allowed to the kernel from now on. CUDA is asked once for each kernel and
// device: the answer takes some 10 us.
template <typename Kernel>
uint32_t blocks_at_once(Kernel kernel, uint32_t threads, uint32_t shared_bytes) {
  static std::mutex mutex;
  static std::map<std::pair<int, Kernel>, uint32_t> known;
  const std::lock_guard lock(mutex);
  const int device = current_device();
  uint32_t& blocks = known[{device, kernel}];
  if (blocks == 0) {
    blocks = std::max(1u, blocks_a_processor(kernel, threads, shared_bytes)) *
             cuda_multiprocessor_count(device);
  }
  return blocks;
}

// Loads the code of all these kernels onto the current device.
template <typename Epilogue>
void load_product_kernels() {
  load_kernel(scan_dp4a<1, Epilogue>);
  load_kernel(scan_dp4a<2, Epilogue>);
  load_kernel(scan_dp4a<3, Epilogue>);
  load_kernel(scan_mma<16, 4, Epilogue>);
  load_kernel(scan_mma<32, 4, Epilogue>);
  load_kernel(scan_mma<64, 4, Epilogue>);
  load_kernel(scan_mma<4 * kScanMmaQueriesMax, 4, Epilogue>);
  load_kernel(scan_wgmma<32, 4, Epilogue>);
  load_kernel(scan_wgmma<64, 4, Epilogue>);
  load_kernel(scan_wgmma<128, 4, Epilogue>);
  load_kernel(scan_wgmma<256, 4, Epilogue>);
}

template <int kQueries, typename Epilogue>
void start_dp4a_of(const ProductNames& names, const typename Epilogue::Args& args,
                   uint32_t first_query, cudaStream_t stream) {
  // There are enough blocks that the last ones to end are a small part of all.
  constexpr uint64_t kBlocksAProcessor = 64;
  const uint64_t rows = uint64_t{args.step_count} * kStepRows;
  const uint32_t row_blocks = blocks_for(rows, kDp4aBlockRows);
  const uint64_t wanted = kBlocksAProcessor * cuda_multiprocessor_count(current_device());
  const uint64_t columns = uint64_t{args.column_count} * row_blocks / wanted;
  const uint32_t columns_per_block = static_cast<uint32_t>(
      std::clamp<uint64_t>(columns / kDp4aColumnGrain * kDp4aColumnGrain, kDp4aColumnGrain, 1024));
  // A block that has all rows has no warps without any.
  const uint32_t threads = std::min(kDp4aThreads, blocks_for(rows, 32 * kRowsPerThread) * 32);
  const dim3 grid(blocks_for(args.column_count, columns_per_block), row_blocks);
  launch_kernel(names.dp4a[kQueries - 1], scan_dp4a<kQueries, Epilogue>, grid, threads, 0, stream,
                args, first_query, columns_per_block);
}

template <typename Epilogue>
void start_product_dp4a(const ProductNames& names, const typename Epilogue::Args& args,
                        cudaStream_t stream) {
  for (uint32_t first = 0; first < args.query_count; first += kScanDp4aQueriesMax) {
    switch (args.query_count - first) {
      case 1:
        start_dp4a_of<1, Epilogue>(names, args, first, stream);
        break;
      case 2:
        start_dp4a_of<2, Epilogue>(names, args, first, stream);
        break;
      default:
        start_dp4a_of<3, Epilogue>(names, args, first, stream);
    }
  }
}

// Starts a kernel whose blocks share `steps` steps for each tile of queries. maps: arguments after
// the first.
template <typename Kernel, typename Args, typename... Maps>
void start_walkers(const char* name, Kernel kernel, uint32_t threads, uint32_t shared_bytes,
                   uint32_t queries_in_tile, uint64_t steps, const Args& args, cudaStream_t stream,
                   const Maps&... maps) {
  const uint32_t query_tiles = blocks_for(args.query_count, queries_in_tile);
  // There are as many blocks as run at the same time, so that those of different queries read the
  // same part of the matrix together.
  const uint32_t running = std::min(blocks_at_once(kernel, threads, shared_bytes), walkers_max());
  const uint32_t walkers =
      static_cast<uint32_t>(std::clamp<uint64_t>(running / query_tiles, 1, steps));
  launch_kernel(name, kernel, dim3(walkers, query_tiles), threads, shared_bytes, stream, args,
                maps...);
}

template <int kLimbRows, typename Epilogue>
void start_mma_of(const char* name, const typename Epilogue::Args& args, cudaStream_t stream) {
  start_walkers(name, scan_mma<kLimbRows, 4, Epilogue>, kMmaThreads,
                limb_shared_bytes<kLimbRows, 4>(), kLimbRows / 4,
                uint64_t{MmaTiles::count(args.column_count)} * args.step_count, args, stream);
}

template <typename Epilogue>
void start_product_mma(const ProductNames& names, const typename Epilogue::Args& args,
                       cudaStream_t stream) {
  if (args.query_count <= 4) return start_mma_of<16, Epilogue>(names.mma[0], args, stream);
  if (args.query_count <= 8) return start_mma_of<32, Epilogue>(names.mma[1], args, stream);
  if (args.query_count <= 16) return start_mma_of<64, Epilogue>(names.mma[2], args, stream);
  start_mma_of<4 * kScanMmaQueriesMax, Epilogue>(names.mma[3], args, stream);
}

template <int kLimbRows, typename Epilogue>
void start_wgmma_of(const char* name, const typename Epilogue::Args& args, cudaStream_t stream) {
  start_walkers(name, scan_wgmma<kLimbRows, 4, Epilogue>, kWgmmaThreads,
                limb_shared_bytes<kLimbRows, 4>(), kLimbRows / 4,
                uint64_t{WgmmaTiles::count(args.column_count)} * args.step_count, args, stream);
}

template <typename Epilogue>
void start_product_wgmma(const ProductNames& names, const typename Epilogue::Args& args,
                         cudaStream_t stream) {
  if (args.query_count <= 8) return start_wgmma_of<32, Epilogue>(names.wgmma[0], args, stream);
  if (args.query_count <= 16) return start_wgmma_of<64, Epilogue>(names.wgmma[1], args, stream);
  if (args.query_count <= 32) return start_wgmma_of<128, Epilogue>(names.wgmma[2], args, stream);
  start_wgmma_of<256, Epilogue>(names.wgmma[3], args, stream);
}

}  // namespace
}  // namespace blindfuse
