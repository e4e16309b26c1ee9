// A random matrix and random queries, cut into limbs, in the device's memory, ready for a scan.
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/cuda/options.h"
#include "bench/cuda/random_bytes.h"
#include "cuda/device/memory.h"
#include "cuda/device/stream.h"
#include "cuda/scan/device_matrix.h"
#include "cuda/scan/scanner.h"
#include "host/system/worker_threads.h"

namespace blindfuse::bench {

// The kernel's name in the engine's makers. "auto" is none in particular.
inline std::string_view kernel_argument(const std::string& kernel) {
  return kernel == "auto" ? std::string_view() : std::string_view(kernel);
}

// Every order that a kernel may want.
inline constexpr LimbOrder kLimbOrders[] = {LimbOrder::kRows, LimbOrder::kWgmma, LimbOrder::kMma};

class ScanProblem {
 public:
  // `device` is the current one. Throws ResourceError when it has no room for so much.
  ScanProblem(const Shape& shape, size_t batch_max, int device, const RandomBytes& random,
              WorkerThreads& threads);

  // The words of query q.
  static std::span<const uint8_t> query(const RandomBytes& random, const Shape& shape, size_t q) {
    return random.part(shape.rows * sizeof(uint32_t), shape.columns + q);
  }

  const DeviceMatrix& matrix() const { return matrix_; }
  const Stream& stream() const { return stream_; }

  // The kernel, or for "auto" what the engine would choose for this matrix.
  std::unique_ptr<Scanner> make_scanner(const std::string& kernel) const;

  // Puts a scan with the first `batch` queries into the stream: it adds to the products.
  void start(Scanner& scanner, size_t batch);
  // The products of the first `batch` queries, C words each.
  std::vector<uint32_t> products(Scanner& scanner, size_t batch);

 private:
  Limbs limbs(LimbOrder order) const;
  void cut_queries(const Shape& shape, size_t count, const RandomBytes& random);

  DeviceMatrix matrix_;
  DeviceMemory<int8_t> limbs_[std::size(kLimbOrders)];  // in each of them
  DeviceMemory<uint32_t> products_;
  Stream stream_;
};

}  // namespace blindfuse::bench
