#include "cuda/scan/kernel_kinds.h"

#include <string>

#include "cuda/scan/scan_kernels.h"
#include "src/base/errors.h"

namespace blindfuse {

std::string_view name_of(ScanKernel kernel) {
  switch (kernel) {
    case ScanKernel::kDp4a:
      return "dp4a";
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

}  // namespace blindfuse
