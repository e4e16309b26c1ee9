// One scan of a matrix, by the kernel that is asked for or the fastest for the batch.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/scan/cublas_product.h"
#include "cuda/scan/device_matrix.h"
#include "cuda/scan/kernels/scan_args.h"
#include "src/engine/engine.h"

namespace blindfuse {

class Scanner {
 public:
  // kernel: one of kernel_names(), or "" for the fastest by the size of the batch. Throws
  // UsageError for any other.
  Scanner(const DeviceMatrix& matrix, std::string_view kernel);

  // Throws what the constructor throws for this kernel.
  static void check_kernel(std::string_view kernel) { kernel_named(kernel); }

  // Those that this machine can run.
  static std::vector<std::string_view> kernel_names();

  // Which kernel serves which batch, for people; "" when one serves all.
  std::string choice() const;

  // Steps of 128 rows that a range touches, and the rows of the first that do not count.
  static uint32_t step_count(RowRange rows);
  static uint32_t lead(RowRange rows) { return static_cast<uint32_t>(rows.first % kStepRows); }

  // The order in which start() wants the limbs of so many queries.
  LimbOrder limb_order(uint32_t query_count) const;

  // Device memory that start() takes by itself for so many queries.
  uint64_t bytes_for(uint64_t query_count) const;

  // products[q * C + c] += query q's limbs times the rows; limbs as ScanArgs has them, with
  // lead(rows) zeros in front. Returns at once.
  void start(const Limbs& limbs, uint32_t query_count, RowRange rows, uint32_t* products,
             cudaStream_t stream);

  // Times the kernels on the matrix as it is, to choose by. Some 30 scans, and none the second
  // time.
  void calibrate();

 private:
  enum class Kernel { kAuto, kDp4a, kMma, kWgmma, kCublas };

  static Kernel kernel_named(std::string_view name);
  ScanArgs args(const Limbs& limbs, uint32_t query_count, RowRange rows, uint32_t* products) const;
  Kernel kernel_for(uint32_t query_count) const;
  void start_kernel(Kernel kernel, const ScanArgs& args, cudaStream_t stream);
  double milliseconds(Kernel kernel, uint32_t query_count);

  const DeviceMatrix& matrix_;
  Kernel kernel_;
  uint32_t dp4a_max_;           // queries up to which dp4a is the fastest
  Kernel many_ = Kernel::kMma;  // what is the fastest for more
  bool calibrated_ = false;
  std::unique_ptr<CublasProduct> cublas_;
};

}  // namespace blindfuse
