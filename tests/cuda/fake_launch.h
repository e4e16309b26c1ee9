// What cuda/device/launch.cuh has, for kernels of the emulator next to the stand-in for the runtime
// (fake_runtime.h).
#pragma once

#define BLINDFUSE_CUDA_LAUNCH_CUH

#include <type_traits>

#include "cuda/device/check.h"
#include "cuda/scan/kernels/scan_args.h"
#include "tests/cuda/fake_runtime.h"

namespace blindfuse {
namespace emulator {

// Alters a number that a kernel with such an argument has computed, if it is one of the product or
// of its check: query 0's product with column 0, the highest limb of its first word, its
// difference, or the first row of the check vector.
template <typename Argument>
void miscount(const Argument& argument) {
  if constexpr (std::is_same_v<Argument, ScanArgs>) {
    argument.products[0] ^= 0x40000000;
  } else if constexpr (std::is_same_v<Argument, Limbs>) {
    const uint32_t row = limb_row(0, 3);
    argument.bytes[argument.order == LimbOrder::kMma ? fragment_offset(row, 0)
                                                     : row * argument.pitch] ^= 1;
  } else if constexpr (std::is_same_v<Argument, WeighProductsArgs>) {
    argument.differences[0] += 1;
  } else if constexpr (std::is_same_v<Argument, WeighColumnsArgs>) {
    argument.vector[0] ^= 1;
  }
}

}  // namespace emulator

template <typename Kernel, typename... Args>
void launch_kernel(const char* name, Kernel kernel, dim3 grid, uint32_t threads,
                   uint32_t shared_bytes, cudaStream_t stream, const Args&... args) {
  const DeviceCall call(name);
  check_cuda(fake_cuda::launch(name, reinterpret_cast<const void*>(kernel), shared_bytes, stream,
                               [=](fake_cuda::LaunchFault fault) {
                                 emulator::launch_with(
                                     {.omits_last_block = fault == fake_cuda::LaunchFault::kSpoil},
                                     grid, threads, shared_bytes, kernel, args...);
                                 if (fault == fake_cuda::LaunchFault::kMiscount) {
                                   (emulator::miscount(args), ...);
                                 }
                               }),
             name, __FILE__, __LINE__);
}

template <typename Kernel>
void load_kernel(Kernel kernel) {
  BLINDFUSE_CUDA(fake_cuda::load_kernel(reinterpret_cast<const void*>(kernel)));
}

template <typename Kernel>
void allow_shared(Kernel kernel, uint32_t shared_bytes) {
  BLINDFUSE_CUDA(fake_cuda::allow_shared(reinterpret_cast<const void*>(kernel), shared_bytes));
}

template <typename Kernel>
uint32_t blocks_a_processor(Kernel kernel, uint32_t, uint32_t shared_bytes) {
  allow_shared(kernel, shared_bytes);
  return 2;
}

}  // namespace blindfuse
