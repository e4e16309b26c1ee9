// The measurements that say which kernel is the fastest for each batch, for matrices of each size.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace blindfuse {

struct Calibration {
  uint32_t dp4a_max = 0;        // queries up to which dp4a is the fastest
  bool wgmma_for_many = false;  // rather than mma, for more
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
