#include "cuda/packing/packing_kernels.h"

#include "cuda/device/launch.cuh"
#include "cuda/packing/kernels/cut_keys.cuh"
#include "cuda/packing/kernels/cut_table.cuh"
#include "cuda/packing/kernels/finish_packs.cuh"
#include "cuda/packing/kernels/point_sums.cuh"
#include "cuda/scan/start_products.cuh"

namespace blindfuse {
namespace {

constexpr ProductNames kSumNames = {
    {"sum_dp4a<1>", "sum_dp4a<2>", "sum_dp4a<3>"},
    {"sum_mma<16>", "sum_mma<32>", "sum_mma<64>", "sum_mma<128>"},
    {"sum_wgmma<32>", "sum_wgmma<64>", "sum_wgmma<128>", "sum_wgmma<256>"}};

}  // namespace

void load_packing_kernels() {
  load_kernel(cut_table);
  load_kernel(cut_keys);
  load_product_kernels<PointSums>();
  load_kernel(finish_packs);
}

void start_cut_table(const CutTableArgs& args, uint32_t group_count, cudaStream_t stream) {
  launch_kernel("cut_table", cut_table, dim3(kSumRows / kCutTableRows, group_count),
                kCutTableThreads, 0, stream, args);
}

void start_cut_keys(const CutKeysArgs& args, uint32_t query_count, cudaStream_t stream) {
  launch_kernel("cut_keys", cut_keys, dim3(kRingHalves, query_count), kCutKeysThreads, 0, stream,
                args);
}

ScanKernel sum_kernel_for(ScanKernel scan) {
  switch (scan) {
    case ScanKernel::kDp4a:
      return ScanKernel::kDp4a;
    case ScanKernel::kWgmma:
    case ScanKernel::kWgmmaTma:
      return ScanKernel::kWgmma;
    case ScanKernel::kMma:
      return ScanKernel::kMma;
  }
  return ScanKernel::kMma;
}

void start_sums(ScanKernel kernel, const SumArgs& args, cudaStream_t stream) {
  if (kernel == ScanKernel::kDp4a) return start_product_dp4a<PointSums>(kSumNames, args, stream);
  if (kernel == ScanKernel::kWgmma) return start_product_wgmma<PointSums>(kSumNames, args, stream);
  start_product_mma<PointSums>(kSumNames, args, stream);
}

void start_finish_packs(const FinishArgs& args, uint32_t query_count, cudaStream_t stream) {
  launch_kernel("finish_packs", finish_packs, dim3(args.pack_count, query_count), kNttThreads,
                kFinishSharedBytes, stream, args);
}

}  // namespace blindfuse
