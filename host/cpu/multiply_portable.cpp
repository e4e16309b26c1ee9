// u32 x i8 in plain C++, for every machine.
#include "host/cpu/multiply_kernel.h"

namespace blindfuse {

void multiply_portable(const KernelTask& task) {
  for (size_t c = 0; c < task.column_count; ++c) {
    const int8_t* column = task.columns + c * task.column_stride;
    for (size_t b = 0; b < task.query_count; ++b) {
      const uint32_t* query = task.queries + b * task.query_stride;
      uint32_t sum = 0;
      for (size_t r = 0; r < task.rows; ++r) {
        sum += query[r] * static_cast<uint32_t>(static_cast<int32_t>(column[r]));
      }
      task.products[b * task.product_stride + c] += sum;
    }
  }
}

}  // namespace blindfuse
