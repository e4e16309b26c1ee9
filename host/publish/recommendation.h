// The layout that a build takes, what it costs, and the few others that an operator may want
// instead, each with the reason to take it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/engines/core_rates.h"
#include "host/publish/planner.h"
#include "src/engine/engine_maker.h"

namespace blindfuse {

// Queries in a full batch: the server's limit unless it is told otherwise.
inline constexpr size_t kFullBatch = ServingNeeds{}.batch_max;

// The costs of a layout (docs/PARAMETERS.md, section 8). A request is a look-up, or one for several
// keys. Times are of one core with the CPU's engine.
struct LayoutCost {
  uint64_t first_bytes = 0;  // of a client's first request in an epoch, with tables, hints or masks
  uint64_t later_bytes = 0;  // of a request
  uint64_t server_bytes = 0;           // of memory: matrix, packing tables, and hints or masks
  double alone_seconds = 0;            // for a request while no other waits
  double batch_seconds = 0;            // for a request in full batches
  double lookups_per_core_second = 0;  // of keys, in full requests and full batches
};

// All rates are positive.
LayoutCost layout_cost(const Plan& plan, const CoreRates& rates);

struct Alternative {
  Plan plan;
  std::vector<std::string> reasons;  // at least one, such as "35 % less server memory"
};

inline constexpr size_t kAlternativesMax = 3;

struct Recommendation {
  Plan best;                              // the plan of a build
  std::vector<Alternative> alternatives;  // at most kAlternativesMax, none of the layout of `best`
  // The plans of every kind that the request leaves open, with large packing tables, too.
  std::vector<Plan> plans;
  // Where requests are for several keys: the fewest keys for which one request has fewer bytes than
  // as many look-ups of the best layout for one key. Nothing if even a full one has more.
  std::optional<uint32_t> keys_that_pay;
};

// request: one for plan_modes(), whose errors are thrown. levels_fixed: the operator has fixed the
// levels of packed responses, so that alternatives have the same.
Recommendation recommend(const PlanRequest& request, bool levels_fixed, const CoreRates& rates);

// The fewest keys for which one request of `layout`, for several keys, has fewer bytes than as many
// look-ups of `one_key`. Nothing if even a full one has more.
std::optional<uint32_t> keys_that_pay(const Layout& layout, const Layout& one_key);

}  // namespace blindfuse
