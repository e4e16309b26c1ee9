// Shows the signature of a manifest to people and programs.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "src/base/hex.h"
#include "src/protocol/manifest_signature.h"

namespace blindfuse {

// null, or signer, sequence, time (seconds since 1970 UTC) and time_utc (ISO 8601).
inline nlohmann::json signature_json(const std::optional<ManifestSignature>& signature) {
  if (!signature) return nullptr;
  return {{"signer", encode_hex(signature->signer)},
          {"sequence", signature->sequence},
          {"time", signature->time},
          {"time_utc", utc_text(signature->time)}};
}

}  // namespace blindfuse
