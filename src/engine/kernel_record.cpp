#include "src/engine/kernel_record.h"

namespace blindfuse {

std::string_view name_of(CheckStage stage) {
  switch (stage) {
    case CheckStage::kSelfTest:
      return "self-test";
    case CheckStage::kMatrix:
      return "matrix";
    case CheckStage::kCanary:
      return "canary";
    case CheckStage::kProduct:
      return "product";
    case CheckStage::kBuild:
      return "build";
  }
  return "";
}

void KernelRecord::note_passed(std::string_view kernel, CheckStage stage) {
  const std::lock_guard lock(mutex_);
  ++results_[{std::string(kernel), stage}].passed;
}

void KernelRecord::count_failed(std::string_view kernel, CheckStage stage) {
  const std::lock_guard lock(mutex_);
  ++results_[{std::string(kernel), stage}].failed;
}

void KernelRecord::note_failed(std::string_view kernel, CheckStage stage, const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    ++results_[{std::string(kernel), stage}].failed;
    if (!quarantined_.emplace(kernel, why).second) return;
  }
  if (on_quarantine_) on_quarantine_(kernel, stage, why);
}

bool KernelRecord::is_fit(std::string_view kernel) const {
  const std::lock_guard lock(mutex_);
  return !quarantined_.contains(kernel);
}

std::optional<std::string> KernelRecord::why_unfit(std::string_view kernel) const {
  const std::lock_guard lock(mutex_);
  const auto at = quarantined_.find(kernel);
  if (at == quarantined_.end()) return std::nullopt;
  return at->second;
}

std::vector<KernelRecord::Count> KernelRecord::counts() const {
  const std::lock_guard lock(mutex_);
  std::vector<Count> counts;
  for (const auto& [key, results] : results_) {
    counts.push_back({key.first, key.second, results.passed, results.failed});
  }
  return counts;
}

}  // namespace blindfuse
