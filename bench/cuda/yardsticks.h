// The limits of the device, measured in the same run as the kernels: reads of its memory, products
// of bytes by the vendor's library, and transfers from the host.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/cuda/byte_product.h"
#include "bench/cuda/random_bytes.h"
#include "bench/cuda/stopwatch.h"
#include "cuda/device/memory.h"
#include "cuda/device/stream.h"
#include "cuda/scan/device_matrix.h"

namespace blindfuse::bench {

// All rates are per second.
struct Rates {
  double read = 0;        // bytes of the matrix
  double multiplied = 0;  // multiply-adds of signed bytes; 0 where there is no cuBLAS
  double sent = 0;        // bytes from the host's pinned memory to the device's
};

// The median of each.
Rates median(const std::vector<Rates>& rounds);

// On the device that is current when it is made; takes 4.9 GB of its memory, and next to nothing in
// a rehearsal.
class Yardsticks {
 public:
  Yardsticks(const RandomBytes& random, const Options& options);

  // "" if the product can be measured. Otherwise the reason: there is no cuBLAS, or none that
  // works.
  const std::string& why_no_product() const { return why_no_product_; }

  // Measures each of them once, one after another, and the reads of this matrix.
  Rates measure(const DeviceMatrix& matrix);
  double sent_per_second();

  // Exclusive or of all words of the matrix, by the kernel that is timed.
  uint32_t fold(const DeviceMatrix& matrix);

 private:
  double read_per_second(const DeviceMatrix& matrix);
  double multiplied_per_second();
  void try_product();
  void start_read(const DeviceMatrix& matrix);

  const Sizes& sizes_;
  Stopwatch stopwatch_;
  DeviceMemory<int8_t> source_;
  DeviceMemory<int8_t> target_;
  DeviceMemory<uint32_t> folded_;
  PinnedMemory<uint8_t> host_;
  std::unique_ptr<const ByteProduct> product_;
  std::string why_no_product_;
  Stream stream_;
};

}  // namespace blindfuse::bench
