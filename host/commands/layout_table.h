// Layouts as a person reads them, and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "host/publish/planner.h"

namespace blindfuse {

// Every size that follows from a layout; units in the names.
nlohmann::json layout_json(const Layout& layout);

// What secrecy rests on, its estimated security, and how to choose the other mode, in one line.
std::string security_line(const LweParams& set);

// A table of plans, all of one mode, with the one at `best` marked, around which at most `rows` are
// shown.
std::string plan_table(const std::vector<Plan>& plans, const Plan& best, size_t rows);

}  // namespace blindfuse
