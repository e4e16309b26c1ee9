// Starts the kernels. Functions with a stream return at once, and their work is done in the
// stream's order.
//
// All addresses are the device's, unless a comment says otherwise.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

#include "cuda/scan/kernels/scan_args.h"

namespace blindfuse {

// The largest number of queries for which the few-queries kernel is compiled.
constexpr uint32_t kScanDp4aQueriesMax = 3;
// The largest number of queries in a tile of the many-queries kernel. More queries scan the matrix
// again.
constexpr uint32_t kScanMmaQueriesMax = 32;
// Queries in each of their tiles.
constexpr std::array<uint32_t, 4> kMmaTileQueries = {4, 8, 16, kScanMmaQueriesMax};
constexpr std::array<uint32_t, 4> kWgmmaTileQueries = {8, 16, 32, 64};

// The limb rows that must be allocated for up to this many queries: those of as many tiles as any
// kernel takes for them. 4 * query_count rounded up to 32, 64, 128, or a multiple of 256.
uint64_t limb_rows_for(uint32_t query_count);

// Loads the code of all kernels to the current device, so that none is loaded, or compiled from
// PTX, while a client waits for it. Thrust's kernels (cuda/checks) are not among them. They check
// the arrived bytes and the kernels themselves, before a server answers and after a product was
// wrong.
void load_scan_kernels();

// The most blocks of a tensor-core kernel that share a product. The environment variable
// BLINDFUSE_CUDA_WALKERS_MAX sets it for tests, so that blocks walk long on any device. Without the
// variable there is no limit. Any thread.
uint32_t walkers_max();

void start_cut(const PlainWords& from, uint32_t query_count, const Limbs& limbs, cudaStream_t);
void start_cut(const BitSequences& from, uint32_t query_count, const Limbs& limbs,
               const QuerySums& check, cudaStream_t stream);
// Warps with which start_cut() cuts a query's bit sequence into limbs of this pitch.
uint32_t cut_warps(uint64_t limb_pitch);
void start_scan_dp4a(const ScanArgs& args, cudaStream_t stream);
// Takes the limbs in LimbOrder::kMma.
void start_scan_mma(const ScanArgs& args, cudaStream_t stream);
// Requires has_wgmma(), and the limbs in LimbOrder::kWgmma.
void start_scan_wgmma(const ScanArgs& args, cudaStream_t stream);
// Requires has_wgmma(), and the limbs in LimbOrder::kRows, 16-byte aligned.
void start_scan_wgmma_tma(const ScanArgs& args, cudaStream_t stream);
// True if the current device runs code with Hopper's instructions. The device is asked, because one
// of compute capability 9.0 whose driver compiles the PTX (CUDA_FORCE_PTX_JIT) does not. Returns
// after it has answered.
bool has_wgmma();
void start_round(const RoundArgs& args, uint32_t query_count, cudaStream_t stream);
void start_weigh_columns(const WeighColumnsArgs& args, cudaStream_t stream);
void start_weigh_products(const WeighProductsArgs& args, uint32_t query_count, cudaStream_t stream);

}  // namespace blindfuse
