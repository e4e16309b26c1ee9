// The measurements that say which kernel is the fastest for each batch, for matrices of each size.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "cuda/scan/kernel_kinds.h"

namespace blindfuse {

// The batches that are timed: the largest of each tile of each kernel. Larger batches take the
// largest tile several times.
constexpr std::array<uint32_t, 8> kTimedBatches = {1, 2, 3, 4, 8, 16, 32, 64};

// The fastest kernel for each size of a batch.
struct Calibration {
  std::array<ScanKernel, kTimedBatches.size()> fastest;

  ScanKernel kernel_for(uint32_t query_count) const {
    size_t i = 0;
    while (i + 1 < kTimedBatches.size() && kTimedBatches[i] < query_count) ++i;
    return fastest[i];
  }
};

// The measurements on one device. They are kept until the process ends, so that a new epoch is not
// measured next to the batches of others. Any thread.
class Calibrations {
 public:
  // bytes_min: a scan of a smaller matrix takes too little time to matter or to be measured.
  explicit Calibrations(uint64_t bytes_min = 64 << 20) : bytes_min_(bytes_min) {}

  uint64_t bytes_min() const { return bytes_min_; }
  std::optional<Calibration> find(uint64_t row_count, uint64_t column_count) const {
    const std::lock_guard lock(mutex_);
    const auto at = measured_.find({row_count, column_count});
    if (at == measured_.end()) return std::nullopt;
    return at->second;
  }
  void store(uint64_t row_count, uint64_t column_count, const Calibration& calibration) {
    const std::lock_guard lock(mutex_);
    measured_[{row_count, column_count}] = calibration;
  }

 private:
  const uint64_t bytes_min_;
  mutable std::mutex mutex_;
  std::map<std::pair<uint64_t, uint64_t>, Calibration> measured_;
};

}  // namespace blindfuse
