#include "host/cpu/scan/multiply_kernel.h"

#include <array>

namespace blindfuse {
namespace {

// In the order in which they are usually fast.
constexpr std::array kKernels = {
#if defined(__x86_64__)
    &kMultiplyAmx,      &kMultiplyAvx512Vnni, &kMultiplyAvxVnni, &kMultiplyAvx512, &kMultiplyAvx2,
#elif defined(__aarch64__)
    &kMultiplyNeonDotprod,
#endif
    &kMultiplyPortable,
};

}  // namespace

std::span<const MultiplyKernel* const> multiply_kernels() { return kKernels; }

}  // namespace blindfuse
