// Scans a matrix once, by the kernel that is asked for or by the fastest for the batch.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/scan/calibrations.h"
#include "cuda/scan/check_vector.h"
#include "cuda/scan/device_matrix.h"
#include "cuda/scan/kernel_kinds.h"
#include "cuda/scan/kernels/scan_args.h"
#include "src/base/errors.h"
#include "src/engine/engine.h"
#include "src/engine/kernel_record.h"

namespace blindfuse {

// A kernel was wrong and is now in quarantine, and another one replaces it.
class KernelReplacedError : public ResourceError {
 public:
  using ResourceError::ResourceError;
};

class Scanner {
 public:
  using Kernel = ScanKernel;

  // A kernel for one scan, and the order in which it wants its limbs.
  struct Choice {
    Kernel kernel = Kernel::kMma;
    LimbOrder order = LimbOrder::kMma;
  };

  // kernel: one of scan_kernel_names(), or "" for the fastest by the size of the batch. record:
  // says which of them may be used. calibrations: those of the matrix's device. Throws UsageError
  // for any other name.
  Scanner(const DeviceMatrix& matrix, std::string_view kernel, std::shared_ptr<KernelRecord> record,
          std::shared_ptr<Calibrations> calibrations = std::make_shared<Calibrations>());

  // A table for people of the kernels and their batches. "" if one kernel serves all.
  std::string choice() const;

  // The steps of 128 rows that a range touches, and the rows of the first step that do not count.
  static uint32_t step_count(RowRange rows);
  static uint32_t lead(RowRange rows) { return static_cast<uint32_t>(rows.first % kStepRows); }

  // The kernel for this many queries: the named one, or the fastest. If that is in quarantine, the
  // next of wgmma-tma, wgmma, mma and dp4a. Throws DeviceLostError, which says why, if the named
  // one, or every one, is in quarantine. Any thread.
  Choice choose(uint32_t query_count) const;

  KernelRecord& record() const { return *record_; }
  // The name in the record of the kernels that make and use the check vector.
  static constexpr std::string_view kWeighing = "weighing";

  // Those of query q from words + q * pitch on.
  struct Products {
    uint32_t* words;
    uint64_t pitch;
  };
  // Adds to product c of query q its limbs times the rows of column columns.first + c, for c <
  // columns.count. The limbs are as in ScanArgs, in the choice's order, with lead(rows) zeros
  // before them. Returns at once.
  void start_columns(Choice choice, const Limbs& limbs, uint32_t query_count, RowRange rows,
                     ColumnRange columns, Products products, cudaStream_t stream);
  // The same for all columns. The products of query q begin at products + q * C.
  void start(Choice choice, const Limbs& limbs, uint32_t query_count, RowRange rows,
             uint32_t* products, cudaStream_t stream) {
    const uint64_t columns = matrix_.column_count();
    start_columns(choice, limbs, query_count, rows, {0, columns}, {products, columns}, stream);
  }

  // Does the work of Engine::check_kernels (src/engine/engine.h): every kernel that may be chosen,
  // with each of its tiles, multiplies the matrix with odd multiples of the canary's words. Takes
  // some 16 scans, and trial_bytes() of device memory until it returns (cuda/scan/trial_memory.h).
  // If the canary has weights, the check vector is then made, which stays.
  void check_kernels(const Canary& canary, size_t batch_max);

  // The vector with which products are checked. Null if they are not.
  const CheckVector* check_vector() const {
    return is_check_vector_right_ ? check_vector_.get() : nullptr;
  }

  // Called after a wrong product. Throws DeviceLostError if the matrix differs from the one that
  // was sent, so that no kernel is at fault. If this cannot be determined for lack of memory,
  // returns as if the matrix were right. `what`: the wrong product, for people.
  void require_matrix(const std::string& what) const;

  // Called after a wrong product, `why`, in a batch of query_count queries, if the matrix is the
  // one that was sent. Puts the kernel into quarantine. Throws KernelReplacedError, which says that
  // the batch is withheld, if another kernel replaces this one. Throws DeviceLostError if none
  // does, or if the matrix was at fault.
  [[noreturn]] void blame(Kernel kernel, CheckStage stage, uint32_t query_count,
                          const std::string& why);

  // Times the usable kernels on the matrix as it is, for the choice among them. Takes some 80
  // scans, and none if a matrix of this size was measured before; timing_bytes() of device memory
  // until it returns. Throws ResourceError, with the bytes needed and those free, if there is no
  // room.
  void calibrate();

 private:
  struct Trial;

  // The kernels that choose() may return, the best first as far as is known without a measurement.
  std::vector<Kernel> candidates() const;
  void check_kernel(Kernel kernel, const Trial& trial);
  void make_check_vector(const Canary& canary);
  [[noreturn]] static void refuse_matrix(const std::string& what);
  ScanArgs args(const Limbs& limbs, uint32_t query_count, RowRange rows, ColumnRange columns,
                Products products) const;
  // Of all rows and columns.
  ScanArgs args(const Limbs& limbs, uint32_t query_count, uint32_t* products) const {
    const uint64_t columns = matrix_.column_count();
    return args(limbs, query_count, {0, matrix_.row_count()}, {0, columns}, {products, columns});
  }
  bool is_fit(Kernel kernel) const { return record_->is_fit(name_of(kernel)); }
  void start_kernel(Kernel kernel, const ScanArgs& args, cudaStream_t stream);
  double milliseconds(Kernel kernel, uint32_t query_count);

  const DeviceMatrix& matrix_;
  const std::shared_ptr<KernelRecord> record_;
  const std::shared_ptr<Calibrations> calibrations_;
  Kernel kernel_;
  bool has_wgmma_ = false;  // asked where no kernel is named
  // The default for a matrix that is not measured.
  Calibration calibration_{Kernel::kDp4a, Kernel::kDp4a, Kernel::kDp4a, Kernel::kMma,
                           Kernel::kMma,  Kernel::kMma,  Kernel::kMma,  Kernel::kMma};
  std::unique_ptr<CheckVector> check_vector_;
  bool is_check_vector_right_ = false;
};

}  // namespace blindfuse
