// Engines on the CPU.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "src/engine/engine_maker.h"

namespace blindfuse {

// kernel: one of cpu_kernel_names(), or "" for the fastest. thread_count 0: one a processor. Throws
// UsageError for a kernel that this machine does not run. Its engines take a column's memory when
// the column is set, and none for shared columns.
std::unique_ptr<EngineMaker> make_cpu_engine_maker(std::string_view kernel, unsigned thread_count);

// The kernels that this machine runs, the fastest first.
std::vector<std::string_view> cpu_kernel_names();

}  // namespace blindfuse
