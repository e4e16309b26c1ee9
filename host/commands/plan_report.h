// The answer of `plan` and `build --dry-run`: the layout that a build takes, with its cost, and the
// few others that an operator may want instead.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "host/engines/core_rates.h"
#include "host/publish/planner.h"

namespace blindfuse {

struct PlanQuestion {
  PlanRequest request;  // for plan_modes()
  uint32_t longest_value = 0;
  bool levels_fixed = false;   // by the operator
  std::optional<Layout> kept;  // the layout that a build would keep instead
  std::string why_not_kept;    // if there is something to keep
};

// rates: of the machine that will serve. Both throw the errors of plan_modes().
std::string plan_text(const PlanQuestion& question, const CoreRates& rates);
nlohmann::json plan_json(const PlanQuestion& question, const CoreRates& rates);

// Measures the rates of this machine, which takes a second or two, and prints the answer on
// standard output. Warns on the log if this machine's memory cannot hold what a server keeps.
void report_plan(const PlanQuestion& question, bool as_json);

}  // namespace blindfuse
