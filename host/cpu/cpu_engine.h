// The engine on the CPU. Kernels are chosen at run time, tiles fit the caches, and threads share
// columns or rows.
#pragma once

#include <memory>

#include "host/cpu/scan/matrix.h"
#include "host/cpu/scan/multiply_kernel.h"
#include "src/engine/engine.h"

namespace blindfuse {

// kernel: one that this machine runs (host/cpu/scan/kernel_choice.h). It outlives the engine.
// Several engines may share a matrix. thread_count 0: one a processor. Throws ResourceError if the
// system gives no more threads.
std::unique_ptr<Engine> make_cpu_engine(const MultiplyKernel& kernel,
                                        std::shared_ptr<Matrix> matrix, unsigned thread_count);

}  // namespace blindfuse
