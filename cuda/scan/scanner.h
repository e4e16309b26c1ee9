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
#include "src/engine/kernel_record.h"

namespace blindfuse {

class Scanner {
 public:
  enum class Kernel { kAuto, kDp4a, kMma, kMmaRows, kWgmma, kCublas };

  // A kernel for one scan, and the order in which it wants its limbs.
  struct Choice {
    Kernel kernel = Kernel::kMma;
    LimbOrder order = LimbOrder::kMma;
  };

  // kernel: one of kernel_names(), or "" for the fastest by the size of the batch. record: which of
  // them may be used. Throws UsageError for any other name.
  Scanner(const DeviceMatrix& matrix, std::string_view kernel,
          std::shared_ptr<const KernelRecord> record);

  // Throws what the constructor throws for this kernel.
  static void check_kernel(std::string_view kernel) { kernel_named(kernel); }

  // Those that this machine can run.
  static std::vector<std::string_view> kernel_names();

  // Which kernel serves which batch, for people; "" when one serves all.
  std::string choice() const;

  // Steps of 128 rows that a range touches, and the rows of the first that do not count.
  static uint32_t step_count(RowRange rows);
  static uint32_t lead(RowRange rows) { return static_cast<uint32_t>(rows.first % kStepRows); }

  // The kernel for so many queries: the one that was named, or the fastest; where that one is in
  // quarantine, the next of wgmma, mma and dp4a. Throws DeviceLostError, saying why, when the one
  // that was named, or every one, is in quarantine. Any thread.
  Choice choose(uint32_t query_count) const;
  static std::string_view name_of(Kernel kernel);

  // Device memory that start() takes by itself for so many queries.
  uint64_t bytes_for(uint64_t query_count) const;

  // products[q * C + c] += query q's limbs times the rows; limbs as ScanArgs has them, in the
  // choice's order, with lead(rows) zeros in front. Returns at once.
  void start(Choice choice, const Limbs& limbs, uint32_t query_count, RowRange rows,
             uint32_t* products, cudaStream_t stream);

  // Times the kernels on the matrix as it is, to choose by. Some 30 scans, and none the second
  // time.
  void calibrate();

 private:
  static Kernel kernel_named(std::string_view name);
  static LimbOrder order_of(Kernel kernel);
  ScanArgs args(const Limbs& limbs, uint32_t query_count, RowRange rows, uint32_t* products) const;
  Kernel preferred(uint32_t query_count) const;
  bool is_fit(Kernel kernel) const { return record_->is_fit(name_of(kernel)); }
  void start_kernel(Kernel kernel, const ScanArgs& args, cudaStream_t stream);
  double milliseconds(Kernel kernel, uint32_t query_count);

  const DeviceMatrix& matrix_;
  const std::shared_ptr<const KernelRecord> record_;
  Kernel kernel_;
  uint32_t dp4a_max_;           // queries up to which dp4a is the fastest
  Kernel many_ = Kernel::kMma;  // what is the fastest for more
  bool calibrated_ = false;
  std::unique_ptr<CublasProduct> cublas_;
};

}  // namespace blindfuse
