// The engine on the CPU. Kernels are chosen at run time, tiles fit the caches, and threads share
// columns or rows.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "host/cpu/scan/matrix.h"
#include "host/cpu/scan/multiply_kernel.h"
#include "src/engine/engine.h"
#include "src/engine/engine_maker.h"

namespace blindfuse {

// Makes engines on the CPU. kernel: one of cpu_kernel_names(), or "" for the fastest. thread_count
// 0: one a processor. Throws UsageError for a kernel that this machine does not run. Its engines
// take a column's memory when the column is set, and none for shared columns.
std::unique_ptr<EngineMaker> make_cpu_engine_maker(std::string_view kernel, unsigned thread_count);

// The kernels that this machine runs, the fastest first.
std::vector<std::string_view> cpu_kernel_names();

// kernel: one that this machine runs (host/cpu/scan/multiply_kernel.h). It outlives the engine.
// Several engines may share a matrix. thread_count 0: one a processor. Throws ResourceError if the
// system gives no more threads.
std::unique_ptr<Engine> make_cpu_engine(const MultiplyKernel& kernel,
                                        std::shared_ptr<Matrix> matrix, unsigned thread_count);

}  // namespace blindfuse
