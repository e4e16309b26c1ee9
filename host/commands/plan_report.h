// Prints what `plan` and `build --dry-run` have to say: the layouts to choose from, which one is
// chosen, and what each costs.
#pragma once

#include <optional>
#include <string>

#include "host/publish/plan_chooser.h"
#include "host/publish/planner.h"
#include "host/publish/rates.h"

namespace blindfuse {

struct PlanQuestion {
  PlanRequest request;  // for plan_kinds()
  uint32_t longest_value = 0;
  bool levels_fixed = false;  // by the operator
  std::optional<Preference> prefer;
  Rates rates;
  std::string rates_file;      // empty: those of this machine
  std::optional<Layout> kept;  // what a build would keep instead
  std::string why_not_kept;    // if there is something to keep
};

// On standard output, for people or as JSON. Throws the errors of plan_kinds().
void report_plans(const PlanQuestion& question, bool as_json);

}  // namespace blindfuse
