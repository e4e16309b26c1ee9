// Chooses the layout of a build: the existing one as long as it fits, otherwise the cheapest.
#pragma once

#include <optional>
#include <string>

#include "host/publish/database_builder.h"

namespace blindfuse {

// The reason, in words, for which `old` cannot hold the surveyed input with these options. Nothing
// if it can. The loads of its shards are not considered.
std::optional<std::string> why_not_kept(const Layout& old, const BuildOptions& options,
                                        const Survey& survey);

// The request for plan_modes(). Mode and parameter set are open in it if the options leave them
// open.
PlanRequest plan_request(const BuildOptions& options, const Survey& survey);

}  // namespace blindfuse
