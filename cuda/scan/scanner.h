// Scans a matrix once, by the kernel that is asked for or by the fastest for the batch.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cuda/scan/calibrations.h"
#include "cuda/scan/check_vector.h"
#include "cuda/scan/device_matrix.h"
#include "cuda/scan/kernel_kinds.h"
#include "cuda/scan/kernels/scan_args.h"
#include "src/engine/engine.h"

namespace blindfuse {

class Scanner {
 public:
  using Kernel = ScanKernel;

  // A kernel for one scan, and the order in which it wants its limbs.
  struct Choice {
    Kernel kernel = Kernel::kMma;
    LimbOrder order = LimbOrder::kMma;
  };

  // kernels: those that it may use, the fastest of them by the size of the batch: one or more of
  // scan_kernel_names(), or none for all that the device runs. calibrations: those of the matrix's
  // device. Throws UsageError for any other name.
  Scanner(const DeviceMatrix& matrix, const std::vector<std::string>& kernels,
          std::shared_ptr<Calibrations> calibrations = std::make_shared<Calibrations>());

  // A table for people of the kernels and their batches. "" if one kernel serves all.
  std::string choice() const;

  // The steps of 128 rows that a range touches, and the rows of the first step that do not count.
  static uint32_t step_count(RowRange rows);
  static uint32_t lead(RowRange rows) { return static_cast<uint32_t>(rows.first % kStepRows); }

  // The fastest kernel for this many queries. Any thread.
  Choice choose(uint32_t query_count) const;

  // The products of query q begin at words + q * pitch.
  struct Products {
    uint32_t* words;
    uint64_t pitch;
  };
  // Adds to product c of query q its limbs times the rows of column columns.first + c, for c <
  // columns.count. The limbs are as in ScanArgs, in the choice's order, with lead(rows) zeros
  // before them. Returns at once.
  void start_columns(Choice choice, const Limbs& limbs, uint32_t query_count, RowRange rows,
                     ColumnRange columns, Products products, cudaStream_t stream);
  // Multiplies by all columns. The products of query q begin at products + q * C.
  void start(Choice choice, const Limbs& limbs, uint32_t query_count, RowRange rows,
             uint32_t* products, cudaStream_t stream) {
    const uint64_t columns = matrix_.column_count();
    start_columns(choice, limbs, query_count, rows, {0, columns}, {products, columns}, stream);
  }

  // Does the work of Engine::check_kernels (src/engine/engine.h) with the kernels as they are
  // chosen, for each size of batches that is timed and for the largest batch. Takes some 10 scans,
  // and trial_bytes() of device memory until it returns (cuda/scan/trial_memory.h). If the canary
  // has weights, the check vector is then made, which stays. Throws DeviceLostError at the first
  // difference.
  void check_kernels(const Canary& canary, size_t batch_max);

  // The vector with which products are checked. Null if they are not.
  const CheckVector* check_vector() const { return check_vector_.get(); }

  // Times the usable kernels on the matrix as it is, for the choice among them. Takes some 80
  // scans, and none if a matrix of this size was measured before; timing_bytes() of device memory
  // until it returns. Throws ResourceError, with the bytes needed and those free, if there is no
  // room.
  void calibrate();

 private:
  struct Trial;

  bool may_use(Kernel kernel) const;
  void check_kernel(const Trial& trial, Kernel kernel, uint32_t query_count);
  void make_check_vector(const Canary& canary);
  ScanArgs args(const Limbs& limbs, uint32_t query_count, RowRange rows, ColumnRange columns,
                Products products) const;
  // The arguments for all rows and columns.
  ScanArgs args(const Limbs& limbs, uint32_t query_count, uint32_t* products) const {
    const uint64_t columns = matrix_.column_count();
    return args(limbs, query_count, {0, matrix_.row_count()}, {0, columns}, {products, columns});
  }
  void start_kernel(Kernel kernel, const ScanArgs& args, cudaStream_t stream);
  double milliseconds(Kernel kernel, uint32_t query_count);

  const DeviceMatrix& matrix_;
  const std::shared_ptr<Calibrations> calibrations_;
  // choose() returns one of these. The best comes first, as far as is known without a measurement.
  std::vector<Kernel> kernels_;
  // The default for a matrix that is not measured.
  Calibration calibration_{Kernel::kDp4a, Kernel::kDp4a, Kernel::kDp4a, Kernel::kMma,
                           Kernel::kMma,  Kernel::kMma,  Kernel::kMma,  Kernel::kMma};
  std::unique_ptr<CheckVector> check_vector_;
};

}  // namespace blindfuse
