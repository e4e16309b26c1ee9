// Ring kernels as parameters of tests, called by their names.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "host/cpu/packing/ring_kernels.h"

namespace blindfuse {

// Found by Google Test, which would print the bytes of pointers.
inline void PrintTo(const RingKernel& kernel, std::ostream* out) { *out << kernel.name; }

inline std::string name_of_kernel(const ::testing::TestParamInfo<RingKernel>& kernel) {
  return std::string(kernel.param.name);
}

}  // namespace blindfuse
