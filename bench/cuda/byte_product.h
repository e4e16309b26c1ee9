// A product of bytes by the vendor's library, cuBLAS, with which the kernels are compared.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

#include "cuda/device/memory.h"

namespace blindfuse::bench {

// The library is loaded when one is made, so that nothing else depends on it.
class ByteProduct {
 public:
  // On the current device; `side` rows of one operand and columns of the other, a multiple of 4,
  // and `depth` bytes of each, at most 2^17 so that no sum leaves 31 bits. Throws UsageError if the
  // library is not installed, ResourceError if it fails.
  ByteProduct(int side, int depth);
  ~ByteProduct();

  // Starts it. Both operands have their bytes in rows of `depth`, as the library likes them
  // (transposed times not transposed).
  void start(const int8_t* a, const int8_t* b, cudaStream_t stream) const;

 private:
  struct Library;

  const int side_;
  const int depth_;
  const DeviceMemory<int32_t> sums_;
  const std::unique_ptr<const Library> library_;
};

}  // namespace blindfuse::bench
