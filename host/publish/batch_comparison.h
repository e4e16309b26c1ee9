// Layouts for requests of several keys next to each other, and next to single look-ups.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "host/publish/planner.h"

namespace blindfuse {

// The best layout for one key a request, in packed mode with one level: of the same data and set,
// and with everything else left open. Nothing if there is none.
std::optional<Plan> best_for_one_key(const PlanRequest& request);

// Copies of the chosen plan, first, and of those with the fewest bytes whose packing tables take at
// most one, two and four times the bytes of the matrix, and any; then what a build would choose for
// a quarter of the keys a request, and for four times as many. No layout is there twice.
//
// request: one for plan_kinds(), with several keys a request. A fixed number of shards counts for
// its keys a request alone.
std::vector<Plan> batch_plans_worth_comparing(const PlanRequest& request, const Plan& chosen);

// Bytes of a client for each key of a full request.
double bytes_per_key(const Layout& layout);

// Bytes of the matrix that the server goes through for each key of a full request, as a multiple of
// the other layout's matrix.
double passes_per_key(const Layout& layout, const Layout& one_key);

// The fewest keys for which one request has fewer bytes than as many single look-ups. Nothing if
// even a full one has more.
std::optional<uint32_t> keys_that_pay(const Layout& layout, const Layout& one_key);

}  // namespace blindfuse
