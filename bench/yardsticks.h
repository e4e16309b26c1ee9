// The machine's limits, measured next to every benchmark: its streaming reads, and its multiply
// instruction with nothing else to do.
#pragma once

#include <cstdint>
#include <string_view>

#include "host/cpu/scan/matrix.h"
#include "host/system/worker_threads.h"

namespace blindfuse::bench {

// Seconds to read all bytes of a matrix once, each thread its part, from memory: take more than any
// cache holds.
double read_seconds(const Matrix& matrix, WorkerThreads& threads);

// u32 x i8 multiply-adds a second on all threads, of the instruction that the kernel of this name
// multiplies with, from registers alone. 0 for a kernel without one.
double peak_multiply_adds(std::string_view kernel, WorkerThreads& threads);

}  // namespace blindfuse::bench
