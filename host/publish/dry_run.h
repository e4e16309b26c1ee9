// Reads the operator's pairs as a build does, and finds the layout that a build would choose.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/publish/database_builder.h"
#include "host/publish/planner.h"
#include "host/publish/survey.h"

namespace blindfuse {

struct DryRun {
  Survey survey;
  uint64_t truncated_values = 0;
  // The layout of the directory's epoch, if a build would keep it.
  std::optional<Layout> kept;
  // The reason why a build would choose another one, in words. Empty if there is no epoch, or it is
  // kept.
  std::string why_not_kept;
  PlanRequest request;  // for plan_modes(), whether or not the layout is kept
};

// root: the database directory, which need not exist. Nothing: a new one. The only file that is
// written takes the pairs. It has no name, and lies in the folder for temporary files ($TMPDIR or
// /tmp). The directory is not locked. Throws InputError and ResourceError as build_database() does
// for its input.
DryRun dry_run(const std::vector<std::unique_ptr<KeyValueSource>>& sources,
               const std::optional<std::filesystem::path>& root, const BuildOptions& options);

}  // namespace blindfuse
