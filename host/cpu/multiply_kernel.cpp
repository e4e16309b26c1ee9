#include "host/cpu/multiply_kernel.h"

#include <array>

namespace blindfuse {
namespace {

bool always() { return true; }

#if defined(__x86_64__)
bool has_avx2() { return __builtin_cpu_supports("avx2") != 0; }
bool has_avx512() {
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0;
}

constexpr std::array kKernels = {
    MultiplyKernel{"avx512", has_avx512, multiply_avx512},
    MultiplyKernel{"avx2", has_avx2, multiply_avx2},
    MultiplyKernel{"portable", always, multiply_portable},
};
#else
constexpr std::array kKernels = {MultiplyKernel{"portable", always, multiply_portable}};
#endif

}  // namespace

std::span<const MultiplyKernel> multiply_kernels() { return kKernels; }

}  // namespace blindfuse
