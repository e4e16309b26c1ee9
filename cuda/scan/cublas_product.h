// The product by the vendor's library, for comparison with the kernels: bytes times limbs with
// cuBLAS.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "cuda/scan/kernels/scan_args.h"

namespace blindfuse {

// For one device. cuBLAS is loaded at its first use, so that no other code depends on it.
class CublasProduct {
 public:
  // Whether the library is installed. The second function throws UsageError if it is not.
  static bool is_there();
  static void require();

  // On the current device. Throws UsageError if the library is not installed, ResourceError if it
  // fails.
  CublasProduct();
  ~CublasProduct();

  // Device memory that start() takes in addition to the arguments', for this many queries and
  // for all of this many columns, or for some of them.
  static uint64_t sum_bytes(uint64_t query_count, uint64_t column_count);
  // What it has of that already.
  uint64_t held_bytes() const;

  // Starts it, after all that was started before on any stream; args.limbs and args.products as for
  // the kernels (cuda/scan/scan_kernels.h). columns_there: the columns in memory from the first one
  // on, at least args.column_count. Where they are fewer than args.column_count rounded up to a
  // multiple of four, as many as are missing lie before the first one.
  void start(const ScanArgs& args, uint64_t columns_there, cudaStream_t stream);

 private:
  class Library;
  struct Work;

  std::unique_ptr<Work> work_;
};

}  // namespace blindfuse
