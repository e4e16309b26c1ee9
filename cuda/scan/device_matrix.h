// The matrix in the device's memory: column after column, as the kernels read it.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "cuda/checks/checksum.h"
#include "cuda/device/memory.h"
#include "cuda/device/stream.h"

namespace blindfuse {

// Every column begins at a multiple of 128 bytes and is followed by zeros up to the next.
class DeviceMatrix {
 public:
  // Makes a matrix of zeros. Throws ResourceError, with the bytes needed and those free, before
  // anything is allocated, if `bytes_beside` more would not fit with it.
  DeviceMatrix(int device, uint64_t row_count, uint64_t column_count, uint64_t bytes_beside);

  // The distance from one column to the next, and the bytes of all columns.
  static uint64_t pitch_of(uint64_t row_count);
  static uint64_t bytes_of(uint64_t row_count, uint64_t column_count);

  int device() const { return device_; }
  // Makes its device the calling thread's current one.
  void use_device() const { BLINDFUSE_CUDA(cudaSetDevice(device_)); }

  uint64_t row_count() const { return row_count_; }
  uint64_t column_count() const { return column_count_; }
  uint64_t pitch() const { return pitch_; }
  const int8_t* data() const { return bytes_.data(); }

  // Does the same as Engine::set_columns (src/engine/engine.h). Returns before all bytes have
  // arrived.
  void set_columns(uint64_t first, std::span<const uint8_t> bytes);

  // Does the same as Engine::share_columns, from a matrix on the same device, by a copy within its
  // memory. Returns false if the two matrices differ in shape.
  bool share_columns(uint64_t first, uint64_t count, const DeviceMatrix& other);

  // Waits until all bytes have arrived, and compares the checksum that the device computes with
  // that of the bytes that were sent. Throws DeviceLostError if they differ. Any thread, also while
  // kernels read the matrix.
  void check() const;

  // The text is for people: "matrix of 1300 rows and 150 columns".
  std::string shape() const;

 private:
  void send(uint64_t first, std::span<const uint8_t> bytes);

  const int device_;
  uint64_t row_count_;
  uint64_t column_count_;
  uint64_t pitch_;
  DeviceMemory<int8_t> bytes_;
  std::vector<PartialChecksum> sent_;  // of each column

  // Two buffers, one filled while the other one is on its way.
  static constexpr uint64_t kStagingBytes = 16 << 20;
  struct Staging {
    PinnedMemory<uint8_t> bytes;
    Event sent;
  };
  mutable std::mutex mutex_;
  mutable Staging staging_[2];  // released when the matrix is checked
  unsigned next_staging_ = 0;
  Stream stream_;  // last: through before the memory goes
};

}  // namespace blindfuse
