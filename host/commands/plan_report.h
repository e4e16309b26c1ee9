// Reports of commands: a manifest's layout and signature, and the answer of `plan` and `build
// --dry-run`. The answer is the layout that a build takes, with its cost, and the few others that
// an operator may want instead.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "host/engines/core_rates.h"
#include "host/publish/planner.h"
#include "src/arithmetic/layout.h"
#include "src/protocol/manifest.h"

namespace blindfuse {

// Every size that follows from a layout; units in the names.
nlohmann::json layout_json(const Layout& layout);

// null, or signer, sequence, time (seconds since 1970 UTC) and time_utc (ISO 8601).
nlohmann::json signature_json(const std::optional<ManifestSignature>& signature);

// One line with the assumption that secrecy rests on, its estimated security, and the way to choose
// the other mode.
std::string security_line(const LweParams& set);

// "look-up", or "request for up to 64 keys".
std::string request_name(const Layout& layout);

// The options with which `build` makes a layout of these shards and this kind in a new directory.
std::string options_for(const Layout& layout);

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

// The name of this machine's processor: the model's name as Linux has it (proc/cpuinfo): "AMD EPYC
// 9R45". Where it has numbers only, as on ARM: "CPU implementer 0x41, part 0xd4f". "unknown" if
// there is neither. root: the folder that contains proc, which is another one in tests.
std::string processor_name(const std::filesystem::path& root = "/");

}  // namespace blindfuse
