// The product on the CPU: kernels chosen at run time, tiles for the caches, threads over columns or
// rows.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "host/matrix.h"
#include "src/engine.h"

namespace blindfuse {

// kernel: the name of one of cpu_kernel_names(), or "" for the fastest. Several engines may share a
// matrix. thread_count 0: one a processor. Throws BadInput for a kernel that this machine does not
// run.
std::unique_ptr<Engine> make_cpu_engine(std::string_view kernel, std::shared_ptr<Matrix> matrix,
                                        unsigned thread_count);

// The kernels that this machine runs, the fastest first.
std::vector<std::string_view> cpu_kernel_names();

}  // namespace blindfuse
