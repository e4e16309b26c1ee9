#include "cuda/pipelines/batch_lane.h"

#include "cuda/device/check.h"

namespace blindfuse {

void BatchLane::allocate(const BatchSizes& sizes, size_t batch_max, uint64_t response_bytes) {
  queries = DeviceMemory<uint32_t>(sizes.queries);
  limbs = DeviceMemory<int8_t>(sizes.limbs);
  sums_and_products = DeviceMemory<uint32_t>(sizes.sums + sizes.products);
  sums = sums_and_products.data();
  products = sums + sizes.sums;
  responses = DeviceMemory<uint32_t>(sizes.responses);
  finished = PinnedMemory<uint8_t>(batch_max * response_bytes);
  differences = PinnedMemory<uint32_t>(batch_max);
}

void BatchLane::finish(const uint32_t* from, uint64_t pitch, uint64_t response_bytes,
                       uint32_t count) const {
  BLINDFUSE_CUDA(cudaMemcpy2DAsync(finished.data(), response_bytes, from, pitch * sizeof(uint32_t),
                                   response_bytes, count, cudaMemcpyDeviceToHost, stream.get()));
}

}  // namespace blindfuse
