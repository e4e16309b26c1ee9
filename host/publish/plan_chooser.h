// Chooses between plans: the fewest bytes, the least time of the server, or the least money.
#pragma once

#include <optional>
#include <tuple>
#include <vector>

#include "host/engines/core_rates.h"
#include "host/publish/plan_cost.h"
#include "host/publish/planner.h"

namespace blindfuse {

enum class Preference {
  kFewPacks,  // cheapest(): nearly the fewest bytes, with few packs
  kBytes,     // the fewest bytes
  kSpeed,     // the least time in full batches of those with few bytes
  kBalanced,  // the least money (host/publish/plan_cost.h)
};

// With kSpeed, a client may transfer this many times the fewest bytes of all plans.
inline constexpr double kBytesForSpeed = 2.0;

// An operator's preference, and what the machine that will serve can do. kSpeed and kBalanced need
// rates.
struct PlanWish {
  Preference preference = Preference::kFewPacks;
  std::optional<CoreRates> rates;
};

class PlanChooser {
 public:
  // kinds: as plan_kinds() gives them, which outlive this. lookups: those with which their bytes
  // were added up.
  PlanChooser(const std::vector<std::vector<Plan>>& kinds, const PlanWish& wish, uint64_t lookups);

  // Of all plans. Among equals the one with the fewest bytes, and then the first.
  const Plan& best() const;

  // Of these plans, at least one, which may be others than the chooser's. Where all of them have
  // too many bytes for kSpeed, the one with the fewest.
  const Plan& best_of(const std::vector<Plan>& plans) const;

 private:
  using Rank = std::tuple<bool, double, uint64_t>;  // the lowest is the best
  Rank rank(const Plan& plan) const;

  const std::vector<std::vector<Plan>>& kinds_;
  const PlanWish wish_;
  const uint64_t lookups_;
  double bytes_max_ = 0;  // with kSpeed
};

}  // namespace blindfuse
