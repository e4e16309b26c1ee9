#include "cuda/pipelines/batch_lane.h"

#include "cuda/device/check.h"

namespace blindfuse {

void BatchLane::allocate(const BatchSizes& sizes, size_t batch_max, uint64_t response_bytes,
                         uint64_t canary_bytes) {
  queries = DeviceMemory<uint32_t>(sizes.queries);
  // Those next to the first canary: not zeros, whose products are right without a scan.
  BLINDFUSE_CUDA(cudaMemset(queries.data(), 0x55, sizes.queries * sizeof(uint32_t)));
  limbs = DeviceMemory<int8_t>(sizes.limbs);
  sums_and_products = DeviceMemory<uint32_t>(sizes.sums + sizes.products);
  sums = sums_and_products.data();
  products = sums + sizes.sums;
  responses = DeviceMemory<uint32_t>(sizes.responses);
  finished = PinnedMemory<uint8_t>(batch_max * response_bytes);
  if (canary_bytes > 0) canary_response = PinnedMemory<uint8_t>(canary_bytes);
  differences = PinnedMemory<uint32_t>(batch_max);
}

void BatchLane::finish(const uint32_t* from, uint64_t pitch, uint64_t response_bytes,
                       uint32_t count) const {
  BLINDFUSE_CUDA(cudaMemcpy2DAsync(finished.data(), response_bytes, from, pitch * sizeof(uint32_t),
                                   response_bytes, count, cudaMemcpyDeviceToHost, stream.get()));
}

std::vector<uint32_t> BatchLane::words(const uint32_t* from, uint64_t count) const {
  std::vector<uint32_t> words(count);
  BLINDFUSE_CUDA(cudaMemcpyAsync(words.data(), from, count * sizeof(uint32_t),
                                 cudaMemcpyDeviceToHost, stream.get()));
  stream.wait();
  return words;
}

}  // namespace blindfuse
