// Which layout a build uses: the one that is there, as long as it fits, or the cheapest.
#pragma once

#include <optional>
#include <string>

#include "host/publish/database_builder.h"

namespace blindfuse {

// Why `old` cannot hold what the survey found as the options want it, in words; nothing when it
// can. The loads of its shards are not looked at.
std::optional<std::string> why_not_kept(const Layout& old, const BuildOptions& options,
                                        const Survey& survey);

// What to plan_modes() for: what the options leave open of mode and parameter set is open.
PlanRequest plan_request(const BuildOptions& options, const Survey& survey);

}  // namespace blindfuse
