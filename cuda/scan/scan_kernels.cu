#include "cuda/scan/scan_kernels.h"

#include <algorithm>

#include "cuda/device/check.h"
#include "cuda/device/launch.cuh"
#include "cuda/device/memory.h"
#include "cuda/device/stream.h"
#include "cuda/device/tensor_map.h"
#include "cuda/scan/kernels/combine_sums.cuh"
#include "cuda/scan/kernels/cut_words.cuh"
#include "cuda/scan/kernels/round_products.cuh"
#include "cuda/scan/kernels/scan_dp4a.cuh"
#include "cuda/scan/kernels/scan_mma.cuh"
#include "cuda/scan/kernels/scan_mma_rows.cuh"
#include "cuda/scan/kernels/scan_wgmma.cuh"
#include "cuda/scan/kernels/scan_wgmma_tma.cuh"
#include "cuda/scan/kernels/weigh_columns.cuh"
#include "cuda/scan/kernels/weigh_products.cuh"

namespace blindfuse {
namespace {

constexpr uint32_t kThreads = 256;  // of a block, where nothing else is said

constexpr uint32_t blocks_for(uint64_t threads, uint32_t each = kThreads) {
  return static_cast<uint32_t>((threads + each - 1) / each);
}

uint32_t processor_count() {
  int device = 0, count = 0;
  BLINDFUSE_CUDA(cudaGetDevice(&device));
  BLINDFUSE_CUDA(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return static_cast<uint32_t>(count);
}

template <int kQueries>
void start_scan_dp4a_of(const char* name, const ScanArgs& args, uint32_t first_query,
                        cudaStream_t stream) {
  // Enough blocks that the last ones to end are a small part of all.
  constexpr uint64_t kBlocksAProcessor = 64;
  const uint32_t row_blocks = blocks_for(uint64_t{args.step_count} * kStepRows, kDp4aBlockRows);
  const uint64_t wanted = kBlocksAProcessor * processor_count();
  const uint64_t columns = uint64_t{args.column_count} * row_blocks / wanted;
  const uint32_t columns_per_block = static_cast<uint32_t>(
      std::clamp<uint64_t>(columns / kDp4aColumnGrain * kDp4aColumnGrain, kDp4aColumnGrain, 1024));
  const dim3 grid(blocks_for(args.column_count, columns_per_block), row_blocks);
  launch_kernel(name, scan_dp4a<kQueries>, grid, kDp4aThreads, 0, stream, args, first_query,
                columns_per_block);
}

// Starts a kernel whose blocks share `steps` steps for each tile of queries. maps: arguments after
// the first.
template <typename Kernel, typename... Maps>
void start_walkers(const char* name, Kernel kernel, uint32_t threads, uint32_t shared_bytes,
                   uint32_t queries_in_tile, uint64_t steps, const ScanArgs& args,
                   cudaStream_t stream, const Maps&... maps) {
  const uint32_t query_tiles = blocks_for(args.query_count, queries_in_tile);
  // As many blocks as run at the same time, so that those of different queries read the same part
  // of the matrix together.
  const uint32_t running =
      std::max(1u, blocks_a_processor(kernel, threads, shared_bytes)) * processor_count();
  const uint32_t walkers =
      static_cast<uint32_t>(std::clamp<uint64_t>(running / query_tiles, 1, steps));
  launch_kernel(name, kernel, dim3(walkers, query_tiles), threads, shared_bytes, stream, args,
                maps...);
}

template <int kLimbRows, int kStages>
void start_scan_mma_of(const char* name, const ScanArgs& args, cudaStream_t stream) {
  start_walkers(name, scan_mma<kLimbRows, kStages>, kMmaThreads,
                limb_shared_bytes<kLimbRows, kStages>(), kLimbRows / 4,
                uint64_t{MmaTiles::count(args.column_count)} * args.step_count, args, stream);
}

template <int kLimbRows, int kStages>
void start_scan_mma_rows_of(const char* name, const ScanArgs& args, cudaStream_t stream) {
  start_walkers(name, scan_mma_rows<kLimbRows, kStages>, kMmaRowsThreads,
                limb_shared_bytes<kLimbRows, kStages>(), kLimbRows / 4,
                uint64_t{MmaRowsTiles::count(args.column_count)} * args.step_count, args, stream);
}

template <int kLimbRows, int kStages>
void start_scan_wgmma_of(const char* name, const ScanArgs& args, cudaStream_t stream) {
  start_walkers(name, scan_wgmma<kLimbRows, kStages>, kWgmmaThreads,
                limb_shared_bytes<kLimbRows, kStages>(), kLimbRows / 4,
                uint64_t{WgmmaTiles::count(args.column_count)} * args.step_count, args, stream);
}

template <int kLimbRows, int kStages>
void start_scan_wgmma_tma_of(const char* name, const ScanArgs& args, cudaStream_t stream) {
  start_walkers(name, scan_wgmma_tma<kLimbRows, kStages>, kWgmmaTmaThreads,
                TensorStages<kLimbRows, kStages>::kSharedBytes, kLimbRows / 4,
                uint64_t{tensor_tiles(args.column_count)} * args.step_count, args, stream,
                make_tensor_map(args.columns, matrix_tensor(args)),
                make_tensor_map(args.limbs, limb_tensor(args, kLimbRows)));
}

}  // namespace

uint64_t limb_rows_for(uint32_t query_count) {
  constexpr uint64_t kLargestTile = 8 * kScanMmaQueriesMax;
  return (uint64_t{query_count} * 4 + kLargestTile - 1) / kLargestTile * kLargestTile;
}

void load_scan_kernels() {
  load_kernel(ask_for_wgmma);
  load_kernel(cut_plain_words);
  load_kernel(cut_bit_sequences);
  load_kernel(scan_dp4a<1>);
  load_kernel(scan_dp4a<2>);
  load_kernel(scan_dp4a<3>);
  load_kernel(scan_mma<16, 4>);
  load_kernel(scan_mma<32, 4>);
  load_kernel(scan_mma<64, 4>);
  load_kernel(scan_mma<4 * kScanMmaQueriesMax, 4>);
  load_kernel(scan_mma_rows<16, 4>);
  load_kernel(scan_mma_rows<32, 4>);
  load_kernel(scan_mma_rows<64, 4>);
  load_kernel(scan_mma_rows<4 * kScanMmaQueriesMax, 4>);
  load_kernel(scan_wgmma<32, 4>);
  load_kernel(scan_wgmma<64, 4>);
  load_kernel(scan_wgmma<128, 4>);
  load_kernel(scan_wgmma<256, 4>);
  load_kernel(scan_wgmma_tma<32, 8>);
  load_kernel(scan_wgmma_tma<64, 8>);
  load_kernel(scan_wgmma_tma<128, 6>);
  load_kernel(scan_wgmma_tma<256, 4>);
  load_kernel(combine_sums);
  load_kernel(round_products);
  load_kernel(weigh_columns);
  load_kernel(weigh_products);
}

void start_cut(const PlainWords& from, uint32_t query_count, const Limbs& limbs,
               cudaStream_t stream) {
  if (limbs.pitch == 0 || query_count == 0) return;
  launch_kernel("cut_plain_words", cut_plain_words,
                dim3(blocks_for(limbs.pitch / kRowsPerThread), query_count), kThreads, 0, stream,
                from, limbs);
}

void start_cut(const BitSequences& from, uint32_t query_count, const Limbs& limbs,
               const QuerySums& check, cudaStream_t stream) {
  if (limbs.pitch == 0 || query_count == 0) return;
  launch_kernel("cut_bit_sequences", cut_bit_sequences,
                dim3(blocks_for(limbs.pitch / kRowsPerThread), query_count), kThreads, 0, stream,
                from, limbs, check);
}

uint32_t cut_warps(uint64_t limb_pitch) {
  return blocks_for(limb_pitch / kRowsPerThread) * (kThreads / 32);
}

void start_scan_dp4a(const ScanArgs& args, cudaStream_t stream) {
  for (uint32_t first = 0; first < args.query_count; first += kScanDp4aQueriesMax) {
    switch (args.query_count - first) {
      case 1:
        start_scan_dp4a_of<1>("scan_dp4a<1>", args, first, stream);
        break;
      case 2:
        start_scan_dp4a_of<2>("scan_dp4a<2>", args, first, stream);
        break;
      default:
        start_scan_dp4a_of<3>("scan_dp4a<3>", args, first, stream);
    }
  }
}

void start_scan_mma(const ScanArgs& args, cudaStream_t stream) {
  if (args.query_count <= 4) return start_scan_mma_of<16, 4>("scan_mma<16>", args, stream);
  if (args.query_count <= 8) return start_scan_mma_of<32, 4>("scan_mma<32>", args, stream);
  if (args.query_count <= 16) return start_scan_mma_of<64, 4>("scan_mma<64>", args, stream);
  start_scan_mma_of<4 * kScanMmaQueriesMax, 4>("scan_mma<128>", args, stream);
}

void start_scan_mma_rows(const ScanArgs& args, cudaStream_t stream) {
  if (args.query_count <= 4) {
    return start_scan_mma_rows_of<16, 4>("scan_mma_rows<16>", args, stream);
  }
  if (args.query_count <= 8) {
    return start_scan_mma_rows_of<32, 4>("scan_mma_rows<32>", args, stream);
  }
  if (args.query_count <= 16) {
    return start_scan_mma_rows_of<64, 4>("scan_mma_rows<64>", args, stream);
  }
  start_scan_mma_rows_of<4 * kScanMmaQueriesMax, 4>("scan_mma_rows<128>", args, stream);
}

bool has_wgmma() {
  const PinnedMemory<uint32_t> answer(1);
  *answer.data() = 0;
  const Stream stream;
  launch_kernel("ask_for_wgmma", ask_for_wgmma, 1, 32, 0, stream.get(), answer.data());
  stream.wait();
  return *answer.data() != 0;
}

void start_scan_wgmma(const ScanArgs& args, cudaStream_t stream) {
  if (args.query_count <= 8) return start_scan_wgmma_of<32, 4>("scan_wgmma<32>", args, stream);
  if (args.query_count <= 16) return start_scan_wgmma_of<64, 4>("scan_wgmma<64>", args, stream);
  if (args.query_count <= 32) return start_scan_wgmma_of<128, 4>("scan_wgmma<128>", args, stream);
  start_scan_wgmma_of<256, 4>("scan_wgmma<256>", args, stream);
}

// Stages that take 160 or 192 KB.
void start_scan_wgmma_tma(const ScanArgs& args, cudaStream_t stream) {
  if (args.query_count <= 8) {
    return start_scan_wgmma_tma_of<32, 8>("scan_wgmma_tma<32>", args, stream);
  }
  if (args.query_count <= 16) {
    return start_scan_wgmma_tma_of<64, 8>("scan_wgmma_tma<64>", args, stream);
  }
  if (args.query_count <= 32) {
    return start_scan_wgmma_tma_of<128, 6>("scan_wgmma_tma<128>", args, stream);
  }
  start_scan_wgmma_tma_of<256, 4>("scan_wgmma_tma<256>", args, stream);
}

void start_combine(const CombineArgs& args, uint32_t query_count, cudaStream_t stream) {
  launch_kernel("combine_sums", combine_sums, dim3(blocks_for(args.column_count), query_count),
                kThreads, 0, stream, args);
}

void start_weigh_columns(const WeighColumnsArgs& args, cudaStream_t stream) {
  if (args.column_pitch == 0 || args.column_count == 0) return;
  launch_kernel("weigh_columns", weigh_columns,
                dim3(blocks_for(args.column_count, kWeighedColumns),
                     blocks_for(args.column_pitch / kRowsPerThread, kWeighColumnsThreads)),
                kWeighColumnsThreads, 0, stream, args);
}

void start_weigh_products(const WeighProductsArgs& args, uint32_t query_count,
                          cudaStream_t stream) {
  if (query_count == 0) return;
  launch_kernel("weigh_products", weigh_products, query_count, kWeighProductsThreads,
                kWeighProductsSharedBytes, stream, args);
}

void start_round(const RoundArgs& args, uint32_t query_count, cudaStream_t stream) {
  if (args.column_count == 0 || query_count == 0) return;
  const uint32_t groups = blocks_for(args.column_count, 32);
  launch_kernel("round_products", round_products, dim3(blocks_for(groups), query_count), kThreads,
                0, stream, args);
}

}  // namespace blindfuse
