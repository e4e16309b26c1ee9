#include "host/publish/plan_comparison.h"

#include <algorithm>
#include <array>

namespace blindfuse {
namespace {

constexpr std::array kComparedKinds = {
    LayoutKind{Mode::kHint, 1, false}, LayoutKind{Mode::kPacked, 1, false},
    LayoutKind{Mode::kPacked, 2, false}, LayoutKind{Mode::kPacked, 2, true}};

bool is_compared(const LayoutKind& kind, const PlanRequest& request, bool with_two_levels) {
  if (kind.mode == Mode::kHint) return true;
  if (!with_two_levels && kind.levels != request.levels) return false;
  return kind.levels == 1 || kind.short_key || !request.short_key;
}

std::vector<Plan> with_tables_within(const std::vector<Plan>& plans, uint64_t matrices) {
  std::vector<Plan> some;
  std::ranges::copy_if(plans, std::back_inserter(some), [&](const Plan& plan) {
    const uint64_t tables = plan.layout.packing_table_bytes();
    return tables <= std::max(kPackingBytesUnasked, matrices * plan.layout.matrix_bytes());
  });
  return some;
}

}  // namespace

std::vector<Plan> plans_worth_comparing(const PlanRequest& request, bool with_two_levels,
                                        const PlanChooser& chooser, const Plan& chosen) {
  std::vector<Plan> compared = {chosen};
  for (const LayoutKind& kind : kComparedKinds) {
    if (!is_compared(kind, request, with_two_levels)) continue;
    const std::vector<Plan> plans = plans_of_kind(request, kind);
    for (const uint64_t matrices : {1, 2}) {
      const std::vector<Plan> some = with_tables_within(plans, matrices);
      if (some.empty()) continue;
      const Plan& best = chooser.best_of(some);
      const bool is_there =
          std::ranges::find(compared, best.layout, &Plan::layout) != compared.end();
      if (!is_there) compared.push_back(best);
    }
  }
  return compared;
}

}  // namespace blindfuse
