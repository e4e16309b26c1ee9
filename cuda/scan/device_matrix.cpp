#include "cuda/scan/device_matrix.h"

#include <algorithm>
#include <string>

#include "cuda/device/device_loss.h"
#include "cuda/scan/scan_kernels.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

uint64_t check_room(uint64_t bytes) {
  return require_room(bytes, "the matrix and its queries",
                      "--engine cpu computes on the processor");
}

}  // namespace

uint64_t DeviceMatrix::pitch_of(uint64_t row_count) {
  return (row_count + kStepRows - 1) / kStepRows * kStepRows;
}

uint64_t DeviceMatrix::bytes_of(uint64_t row_count, uint64_t column_count) {
  return pitch_of(row_count) * column_count;
}

DeviceMatrix::DeviceMatrix(int device, uint64_t row_count, uint64_t column_count,
                           uint64_t bytes_beside)
    : device_(device),
      row_count_(row_count),
      column_count_(column_count),
      pitch_(pitch_of(row_count)),
      bytes_(check_room(bytes_of(row_count, column_count) + bytes_beside) - bytes_beside),
      sent_(column_count) {
  BLINDFUSE_CUDA(cudaDeviceSynchronize());  // cleared before another stream writes there
}

void DeviceMatrix::set_columns(uint64_t first, std::span<const uint8_t> bytes) {
  if (bytes.empty()) return;
  use_device();
  const uint64_t count = bytes.size() / row_count_;
  invariant(count * row_count_ == bytes.size() && first + count <= column_count_,
            "whole columns that lie in the matrix");
  for (uint64_t c = 0; c < count; ++c) {
    sent_[first + c] = PartialChecksum(bytes.subspan(c * row_count_, row_count_));
  }
  const std::lock_guard lock(mutex_);
  const uint64_t step = std::max<uint64_t>(1, kStagingBytes / row_count_);
  for (uint64_t done = 0; done < count; done += step) {
    const uint64_t columns = std::min(step, count - done);
    send(first + done, bytes.subspan(done * row_count_, columns * row_count_));
  }
}

bool DeviceMatrix::share_columns(uint64_t first, uint64_t count, const DeviceMatrix& other) {
  if (other.device_ != device_ || other.row_count_ != row_count_ ||
      other.column_count_ != column_count_) {
    return false;
  }
  invariant(first + count <= column_count_, "the columns lie in the matrix");
  if (count * pitch_ == 0) return true;
  use_device();
  std::copy_n(other.sent_.begin() + static_cast<ptrdiff_t>(first), count,
              sent_.begin() + static_cast<ptrdiff_t>(first));
  // The stream does not wait for what set_columns() sends, and is done before the other matrix may
  // go.
  const Stream stream;
  BLINDFUSE_CUDA(cudaMemcpyAsync(bytes_.data() + first * pitch_, other.data() + first * pitch_,
                                 count * pitch_, cudaMemcpyDeviceToDevice, stream.get()));
  stream.wait();
  return true;
}

void DeviceMatrix::send(uint64_t first, std::span<const uint8_t> bytes) {
  Staging& staging = staging_[next_staging_];
  next_staging_ = 1 - next_staging_;
  staging.sent.wait();
  if (staging.bytes.size() < bytes.size()) {
    staging.bytes = PinnedMemory<uint8_t>(bytes.size());
  }
  std::ranges::copy(bytes, staging.bytes.data());
  BLINDFUSE_CUDA(cudaMemcpy2DAsync(bytes_.data() + first * pitch_, pitch_, staging.bytes.data(),
                                   row_count_, row_count_, bytes.size() / row_count_,
                                   cudaMemcpyHostToDevice, stream_.get()));
  staging.sent.record(stream_);
}

std::string DeviceMatrix::shape() const {
  return "matrix of " + std::to_string(row_count_) + " rows and " + std::to_string(column_count_) +
         " columns";
}

void DeviceMatrix::check() const {
  if (bytes_.size() == 0) return;
  use_device();
  const std::lock_guard lock(mutex_);
  const uint64_t column_words = pitch_ / sizeof(uint64_t);
  uint64_t sent = 0;
  for (uint64_t c = 0; c < column_count_; ++c) sent += sent_[c].from(c * column_words);
  if (sent == device_checksum(reinterpret_cast<const uint64_t*>(bytes_.data()),
                              column_count_ * column_words, stream_.get())) {
    for (Staging& staging : staging_) staging.bytes = {};
    return;
  }
  lose_device("the " + shape() +
              " is not what was sent to the device's memory; nvidia-smi -q -d ECC counts errors of "
              "the memory");
}

}  // namespace blindfuse
