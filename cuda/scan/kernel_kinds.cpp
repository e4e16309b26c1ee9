#include "cuda/scan/kernel_kinds.h"

#include <algorithm>
#include <string>

#include "cuda/scan/scan_kernels.h"
#include "src/base/errors.h"

namespace blindfuse {

std::string_view name_of(ScanKernel kernel) {
  switch (kernel) {
    case ScanKernel::kDp4a:
      return "dp4a";
    case ScanKernel::kAuto:
    case ScanKernel::kMma:
      return "mma";
    case ScanKernel::kWgmma:
      return "wgmma";
    case ScanKernel::kWgmmaTma:
      return "wgmma-tma";
  }
  return "";
}

std::vector<std::string_view> scan_kernel_names() {
  std::vector<std::string_view> names = {"dp4a", "mma"};
  if (has_wgmma()) names.insert(names.end(), {"wgmma", "wgmma-tma"});
  return names;
}

ScanKernel scan_kernel_named(std::string_view name) {
  if (name.empty()) return ScanKernel::kAuto;
  if (name == "dp4a") return ScanKernel::kDp4a;
  if (name == "mma") return ScanKernel::kMma;
  if (name == "wgmma" || name == "wgmma-tma") {
    if (!has_wgmma()) {
      throw UsageError("the kernel cuda:" + std::string(name) +
                       " needs a GPU of compute capability 9.0, and CUDA_FORCE_PTX_JIT unset");
    }
    return name == "wgmma" ? ScanKernel::kWgmma : ScanKernel::kWgmmaTma;
  }
  throw UsageError("there is no CUDA kernel \"" + std::string(name) +
                   "\"; there are dp4a, mma, wgmma and wgmma-tma");
}

LimbOrder limb_order_of(ScanKernel kernel) {
  switch (kernel) {
    case ScanKernel::kAuto:
    case ScanKernel::kMma:
      return LimbOrder::kMma;
    case ScanKernel::kWgmma:
      return LimbOrder::kWgmma;
    case ScanKernel::kDp4a:
    case ScanKernel::kWgmmaTma:
      return LimbOrder::kRows;
  }
  return LimbOrder::kRows;
}

uint32_t room_of(ScanKernel kernel, uint32_t query_count) {
  const auto rounded_up = [&](uint32_t tile) { return (query_count + tile - 1) / tile * tile; };
  switch (kernel) {
    case ScanKernel::kDp4a:
      return query_count;
    case ScanKernel::kAuto:
    case ScanKernel::kMma:
      for (const uint32_t tile : kMmaTileQueries) {
        if (query_count <= tile) return tile;
      }
      return rounded_up(kMmaTileQueries.back());
    case ScanKernel::kWgmma:
    case ScanKernel::kWgmmaTma:
      for (const uint32_t tile : kWgmmaTileQueries) {
        if (query_count <= tile) return tile;
      }
      return rounded_up(kWgmmaTileQueries.back());
  }
  return query_count;
}

// Batches that try each tile of a kernel, of at most this many queries.
std::vector<uint32_t> trial_batches_of(ScanKernel kernel, uint32_t most) {
  std::vector<uint32_t> batches;
  const auto add = [&](uint32_t count) {
    count = std::min(count, most);
    if (batches.empty() || batches.back() < count) batches.push_back(count);
  };
  switch (kernel) {
    case ScanKernel::kDp4a:
      for (uint32_t count = 1; count <= kScanDp4aQueriesMax; ++count) add(count);
      break;
    case ScanKernel::kAuto:
    case ScanKernel::kMma:
      for (const uint32_t tile : kMmaTileQueries) add(tile);
      add(most);
      break;
    case ScanKernel::kWgmma:
    case ScanKernel::kWgmmaTma:
      for (const uint32_t tile : kWgmmaTileQueries) add(tile);
      add(most);
      break;
  }
  return batches;
}

}  // namespace blindfuse
