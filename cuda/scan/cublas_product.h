// The product by the vendor's library, as a kernel to compare with: bytes times limbs with cuBLAS.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "cuda/scan/kernels/scan_tasks.h"

namespace blindfuse {

// For one device. cuBLAS is loaded when it is first needed, so that nothing else depends on it.
class CublasProduct {
 public:
  // Whether the library is installed; and what throws Misuse where it is not.
  static bool is_there();
  static void require();

  // On the current device. Throws Misuse where the library is not installed, EngineTrouble when it
  // fails.
  CublasProduct();
  ~CublasProduct();

  // Device memory that start() takes beside the task's for so many queries and columns.
  static uint64_t sum_bytes(uint64_t query_count, uint64_t column_count);

  // Starts it, behind all that was started before on whatever stream; task.limbs and task.products
  // as for the kernels (cuda/scan/scan_kernels.h).
  void start(const ScanTask& task, cudaStream_t stream);

 private:
  class Library;
  struct Work;

  std::unique_ptr<Work> work_;
};

}  // namespace blindfuse
