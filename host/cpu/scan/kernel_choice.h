// Which kernel a machine gets.
#pragma once

#include <string_view>
#include <vector>

#include "host/cpu/scan/multiply_kernel.h"

namespace blindfuse {

// Those that this processor runs, the best guess first.
std::vector<const MultiplyKernel*> usable_kernels();

// By name, or, for "", the one that is fastest here: the first time, each is timed for less than a
// millisecond. Throws UsageError for a name that is not usable.
const MultiplyKernel& choose_kernel(std::string_view name);

}  // namespace blindfuse
