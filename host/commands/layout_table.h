// Prints layouts for people, and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "host/publish/plan_cost.h"
#include "host/publish/planner.h"

namespace blindfuse {

// Every size that follows from a layout; units in the names.
nlohmann::json layout_json(const Layout& layout);

// One line with the assumption that secrecy rests on, its estimated security, and the way to choose
// the other mode.
std::string security_line(const LweParams& set);

// "look-up", or "request for up to 64 keys".
std::string request_name(const Layout& layout);

// A table of plans of one mode. The one at `best` is marked, and at most `rows` around it are
// shown.
std::string plan_table(const std::vector<Plan>& plans, const Plan& best, size_t rows);

// "packed, 2 levels, short key", "packed, 64 keys a request"
std::string kind_name(const LayoutKind& kind);

// The options with which `build` makes a layout of these shards and this kind in a new directory.
std::string options_for(const Layout& layout);

// A plan with its bytes, and what it costs the server, for look-ups of a client in one epoch.
nlohmann::json plan_json(const Plan& plan, const CoreRates& rates, uint64_t lookups);

// A table of plans of any kind, a line each, of which the first is marked.
std::string comparison_table(const std::vector<Plan>& plans, const CoreRates& rates,
                             uint64_t lookups);

}  // namespace blindfuse
