// Prints layouts for people, and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "host/publish/planner.h"

namespace blindfuse {

// Every size that follows from a layout; units in the names.
nlohmann::json layout_json(const Layout& layout);

// One line with the assumption that secrecy rests on, its estimated security, and the way to choose
// the other mode.
std::string security_line(const LweParams& set);

// A table of plans of one mode. The one at `best` is marked, and at most `rows` around it are
// shown.
std::string plan_table(const std::vector<Plan>& plans, const Plan& best, size_t rows);

}  // namespace blindfuse
