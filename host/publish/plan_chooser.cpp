#include "host/publish/plan_chooser.h"

#include <algorithm>
#include <limits>

#include "src/base/errors.h"

namespace blindfuse {

PlanChooser::PlanChooser(const std::vector<std::vector<Plan>>& kinds, const PlanWish& wish,
                         uint64_t lookups)
    : kinds_(kinds), wish_(wish), lookups_(lookups) {
  const bool needs_rates =
      wish.preference == Preference::kSpeed || wish.preference == Preference::kBalanced;
  invariant(!needs_rates || wish.rates, "time is reckoned from rates");
  uint64_t fewest = std::numeric_limits<uint64_t>::max();
  for (const std::vector<Plan>& plans : kinds) {
    fewest = std::min(fewest, std::ranges::min(plans, {}, &Plan::total_bytes).total_bytes);
  }
  bytes_max_ = kBytesForSpeed * static_cast<double>(fewest);
}

const Plan& PlanChooser::best() const {
  if (wish_.preference == Preference::kFewPacks) return cheapest(kinds_);
  const Plan* best = &best_of(kinds_.front());
  for (const std::vector<Plan>& plans : kinds_) {
    const Plan& of_kind = best_of(plans);
    if (rank(of_kind) < rank(*best)) best = &of_kind;
  }
  return *best;
}

const Plan& PlanChooser::best_of(const std::vector<Plan>& plans) const {
  if (wish_.preference == Preference::kFewPacks) return cheapest(plans);
  return *std::ranges::min_element(plans, {}, [this](const Plan& plan) { return rank(plan); });
}

PlanChooser::Rank PlanChooser::rank(const Plan& plan) const {
  if (wish_.preference == Preference::kBytes) {
    return {false, static_cast<double>(plan.total_bytes), plan.layout.pack_count()};
  }
  const PlanCost cost = plan_cost(plan, *wish_.rates, lookups_);
  if (wish_.preference == Preference::kBalanced) return {false, cost.dollars, plan.total_bytes};
  const auto bytes = static_cast<double>(plan.total_bytes);
  if (bytes > bytes_max_) return {true, bytes, 0};
  return {false, cost.batch_seconds, plan.total_bytes};
}

}  // namespace blindfuse
