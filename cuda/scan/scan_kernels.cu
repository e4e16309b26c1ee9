#include "cuda/scan/scan_kernels.h"

#include <cstdlib>

#include "cuda/device/check.h"
#include "cuda/device/launch.cuh"
#include "cuda/device/memory.h"
#include "cuda/device/stream.h"
#include "cuda/device/tensor_map.h"
#include "cuda/scan/kernels/ask_for_wgmma.cuh"
#include "cuda/scan/kernels/cut_words.cuh"
#include "cuda/scan/kernels/round_products.cuh"
#include "cuda/scan/kernels/scan_wgmma_tma.cuh"
#include "cuda/scan/kernels/weigh.cuh"
#include "cuda/scan/kernels/word_products.cuh"
#include "cuda/scan/start_products.cuh"

namespace blindfuse {
namespace {

constexpr uint32_t kThreads = 256;  // of a block, where nothing else is said

constexpr ProductNames kScanNames = {
    {"scan_dp4a<1>", "scan_dp4a<2>", "scan_dp4a<3>"},
    {"scan_mma<16>", "scan_mma<32>", "scan_mma<64>", "scan_mma<128>"},
    {"scan_wgmma<32>", "scan_wgmma<64>", "scan_wgmma<128>", "scan_wgmma<256>"}};

template <int kLimbRows, int kStages>
void start_scan_wgmma_tma_of(const char* name, const ScanArgs& args, cudaStream_t stream) {
  start_walkers(name, scan_wgmma_tma<kLimbRows, kStages>, kWgmmaTmaThreads,
                TensorStages<kLimbRows, kStages>::kSharedBytes, kLimbRows / 4,
                uint64_t{tensor_tiles(args.column_count)} * args.step_count, args, stream,
                make_tensor_map(args.columns, matrix_tensor(args)),
                make_tensor_map(args.limbs, limb_tensor(args, kLimbRows)));
}

}  // namespace

uint32_t walkers_max() {
  static const uint32_t most = [] {
    const char* const text = std::getenv("BLINDFUSE_CUDA_WALKERS_MAX");
    return text == nullptr ? UINT32_MAX : static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
  }();
  return most;
}

uint64_t limb_rows_for(uint32_t query_count) {
  // The tiles of the other kernels are as large, or two of them are.
  for (const uint32_t tile : kWgmmaTileQueries) {
    if (query_count <= tile) return uint64_t{tile} * 4;
  }
  constexpr uint64_t kLargestTile = kWgmmaTileQueries.back();
  return (query_count + kLargestTile - 1) / kLargestTile * kLargestTile * 4;
}

void load_scan_kernels() {
  load_kernel(ask_for_wgmma);
  load_kernel(cut_plain_words);
  load_kernel(cut_bit_sequences);
  load_product_kernels<WordProducts>();
  load_kernel(scan_wgmma_tma<32, 8>);
  load_kernel(scan_wgmma_tma<64, 8>);
  load_kernel(scan_wgmma_tma<128, 6>);
  load_kernel(scan_wgmma_tma<256, 4>);
  load_kernel(round_products);
  load_kernel(weigh_columns);
  load_kernel(weigh_products);
}

void start_cut(const PlainWords& from, uint32_t query_count, const Limbs& limbs,
               cudaStream_t stream) {
  if (limbs.pitch == 0 || query_count == 0) return;
  launch_kernel("cut_plain_words", cut_plain_words,
                dim3(blocks_for(limbs.pitch / kRowsPerThread, kThreads), query_count), kThreads, 0,
                stream, from, limbs);
}

void start_cut(const BitSequences& from, uint32_t query_count, const Limbs& limbs,
               const QuerySums& check, cudaStream_t stream) {
  if (limbs.pitch == 0 || query_count == 0) return;
  launch_kernel("cut_bit_sequences", cut_bit_sequences,
                dim3(blocks_for(limbs.pitch / kRowsPerThread, kThreads), query_count), kThreads, 0,
                stream, from, limbs, check);
}

uint32_t cut_warps(uint64_t limb_pitch) {
  return blocks_for(limb_pitch / kRowsPerThread, kThreads) * (kThreads / 32);
}

void start_scan_dp4a(const ScanArgs& args, cudaStream_t stream) {
  start_product_dp4a<WordProducts>(kScanNames, args, stream);
}

void start_scan_mma(const ScanArgs& args, cudaStream_t stream) {
  start_product_mma<WordProducts>(kScanNames, args, stream);
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
  start_product_wgmma<WordProducts>(kScanNames, args, stream);
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
  launch_kernel("round_products", round_products, dim3(blocks_for(groups, kThreads), query_count),
                kThreads, 0, stream, args);
}

}  // namespace blindfuse
