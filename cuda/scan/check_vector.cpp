#include "cuda/scan/check_vector.h"

#include "cuda/device/stream.h"
#include "cuda/scan/scan_kernels.h"
#include "src/base/errors.h"

namespace blindfuse {

uint64_t CheckVector::bytes_of(uint64_t row_count, uint64_t column_count, size_t bucket_count) {
  return (bucket_count * DeviceMatrix::pitch_of(row_count) + column_count) * sizeof(uint32_t);
}

CheckVector::CheckVector(const DeviceMatrix& matrix, std::span<const uint32_t> weights,
                         size_t bucket_count)
    : matrix_(matrix),
      bucket_count_(bucket_count),
      words_(bytes_of(matrix.row_count(), matrix.column_count(), bucket_count) / sizeof(uint32_t)) {
  invariant(bucket_count > 0 && matrix.column_count() % bucket_count == 0,
            "buckets have the same number of columns");
  BLINDFUSE_CUDA(cudaDeviceSynchronize());  // all is cleared
  const Stream stream;
  BLINDFUSE_CUDA(cudaMemcpyAsync(words_.data() + weights_at(), weights.data(), weights.size_bytes(),
                                 cudaMemcpyHostToDevice, stream.get()));
  stream.wait();
}

std::vector<uint32_t> CheckVector::compute() {
  const uint64_t rows = matrix_.row_count(), pitch = matrix_.pitch();
  const uint64_t columns = matrix_.column_count() / bucket_count_;
  std::vector<uint32_t> vector(bucket_count_ * rows);
  const Stream stream;
  BLINDFUSE_CUDA(cudaMemsetAsync(words_.data(), 0, weights_at() * sizeof(uint32_t), stream.get()));
  for (size_t bucket = 0; bucket < bucket_count_; ++bucket) {
    const uint64_t first = bucket * columns;
    start_weigh_columns({matrix_.data() + first * pitch, pitch, static_cast<uint32_t>(columns),
                         weights() + first, words_.data() + bucket * pitch},
                        stream.get());
    BLINDFUSE_CUDA(cudaMemcpyAsync(vector.data() + bucket * rows, words_.data() + bucket * pitch,
                                   rows * sizeof(uint32_t), cudaMemcpyDeviceToHost, stream.get()));
  }
  stream.wait();
  return vector;
}

uint32_t CheckVector::cut_warps() const {
  return static_cast<uint32_t>(bucket_count_) * blindfuse::cut_warps(matrix_.pitch());
}

void CheckVector::start_compare(const uint32_t* products, const uint32_t* sums,
                                uint32_t query_count, uint32_t* differences,
                                cudaStream_t stream) const {
  const uint64_t columns = matrix_.column_count();
  start_weigh_products({products, columns, static_cast<uint32_t>(columns), weights(), sums,
                        cut_warps(), differences},
                       query_count, stream);
}

}  // namespace blindfuse
