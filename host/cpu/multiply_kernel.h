// The innermost product, one implementation an instruction set, all bit for bit equal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace blindfuse {

// products[b * product_stride + c] += sum over r < rows of queries[b * query_stride + r] *
// columns[c * column_stride + r], modulo 2^32, for b < query_count and c < column_count. Any
// alignment. The caller cuts `rows` so that a few queries' and a few columns' rows stay in the
// nearest cache.
struct KernelTask {
  const uint32_t* queries;
  size_t query_stride;
  size_t query_count;
  const int8_t* columns;
  size_t column_stride;
  size_t column_count;
  size_t rows;
  uint32_t* products;
  size_t product_stride;
};

struct MultiplyKernel {
  std::string_view name;
  bool (*runs_here)();  // whether this processor and system can run it
  void (*multiply)(const KernelTask& task);
};

// All kernels that were compiled, the fastest first as measured (docs/BENCHMARKS.md).
std::span<const MultiplyKernel> multiply_kernels();

void multiply_portable(const KernelTask& task);
void multiply_avx2(const KernelTask& task);
void multiply_avx512(const KernelTask& task);

}  // namespace blindfuse
