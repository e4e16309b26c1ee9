// What `plan` and `build --dry-run` say of requests for several keys.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "host/engines/core_rates.h"
#include "host/publish/planner.h"

namespace blindfuse {

class BatchReport {
 public:
  // request: one for plan_kinds(), for several keys. chosen: the plan that a build would choose.
  BatchReport(const PlanRequest& request, const Plan& chosen, const CoreRates& rates);

  // The chosen plan, first, and those between which an operator may want to choose.
  const std::vector<Plan>& compared() const { return compared_; }

  // A plan of several keys, or of one, with what it costs.
  nlohmann::json item(const Plan& plan) const;

  // Of the chosen plan: a request for one key, the keys from which on it pays, the keys that are
  // left out, and the best layout for one key a request.
  nlohmann::json summary() const;
  std::string text() const;

 private:
  const Layout& chosen() const { return compared_.front().layout; }
  std::string table() const;
  std::string row(char mark, const Plan& plan) const;
  std::string single_key() const;
  std::string left_out() const;

  const uint64_t lookups_;
  const CoreRates rates_;
  const std::vector<Plan> compared_;
  const std::optional<Plan> one_key_;
};

// Warns on the log if this machine's memory cannot hold what a server keeps of the layout.
void warn_of_memory(const Layout& layout);

}  // namespace blindfuse
