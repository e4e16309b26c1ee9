// Chooses the kernel for a machine.
#pragma once

#include <string_view>
#include <vector>

#include "host/cpu/scan/multiply_kernel.h"

namespace blindfuse {

// The kernels that this processor runs, the best guess first.
std::vector<const MultiplyKernel*> usable_kernels();

// The kernel of this name or, for "", the one that is fastest here: at the first call, each is
// timed for less than a millisecond. Throws UsageError for a name that is not usable.
const MultiplyKernel& choose_kernel(std::string_view name);

}  // namespace blindfuse
