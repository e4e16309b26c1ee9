// A random matrix and queries, cut into limbs, in the device's memory, ready for a scan. Query q is
// 2 q + 1 times a random query modulo 2^32, so that the CPU's product with one query tells all
// products (cuda/checks/product_check.h).
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>

#include "bench/cuda/options.h"
#include "bench/cuda/random_bytes.h"
#include "bench/cuda/report.h"
#include "cuda/device/memory.h"
#include "cuda/device/stream.h"
#include "cuda/scan/device_matrix.h"
#include "cuda/scan/scanner.h"
#include "host/system/worker_threads.h"

namespace blindfuse::bench {

// The kernels that a scanner of this name may use. "auto" is none in particular.
inline std::vector<std::string> kernels_of(const std::string& kernel) {
  if (kernel == "auto") return {};
  return {kernel};
}

// Every order that a kernel may want.
inline constexpr LimbOrder kLimbOrders[] = {LimbOrder::kRows, LimbOrder::kWgmma, LimbOrder::kMma};

class ScanProblem {
 public:
  // `device` is the current one. Throws ResourceError when it has no room for so much.
  ScanProblem(const Shape& shape, size_t batch_max, int device, const RandomBytes& random,
              WorkerThreads& threads);

  const DeviceMatrix& matrix() const { return matrix_; }
  const Stream& stream() const { return stream_; }

  // The kernel, or for "auto" what the engine would choose for this matrix.
  std::unique_ptr<Scanner> make_scanner(const std::string& kernel) const;

  // Puts a scan with the first `batch` queries into the stream: it adds to the products.
  void start(Scanner& scanner, size_t batch);
  // Scans with the first `batch` queries, and compares their products with the CPU's.
  Check check(Scanner& scanner, size_t batch);

 private:
  Limbs limbs(LimbOrder order) const;
  void cut_queries(std::span<const uint32_t> query, uint32_t count);

  DeviceMatrix matrix_;
  DeviceMemory<int8_t> limbs_[std::size(kLimbOrders)];  // in each of them
  DeviceMemory<uint32_t> product_;                      // of the random query, by the CPU
  DeviceMemory<uint32_t> products_;
  Stream stream_;
};

}  // namespace blindfuse::bench
