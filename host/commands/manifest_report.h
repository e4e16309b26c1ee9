// Shows what a manifest has, its layout and its signature, to people and programs.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "src/arithmetic/layout.h"
#include "src/protocol/manifest_signature.h"

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

}  // namespace blindfuse
