// The signature of a manifest (docs/PROTOCOL.md, section 2, Signature).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/protocol/ed25519.h"

namespace blindfuse {

// The largest integer of a manifest: every JSON library can hold it.
inline constexpr uint64_t kManifestIntegerMax = (uint64_t{1} << 53) - 1;

struct ManifestSignature {
  uint64_t sequence = 0;  // 1..kManifestIntegerMax, larger in every later manifest of the signer
  uint64_t time = 0;      // when it was signed, in seconds since 1970 UTC, 0..kManifestIntegerMax
  PublicKey signer{};
  Signature signature{};

  bool operator==(const ManifestSignature&) const = default;
};

// Parses 64 lower-case hex digits; nothing for any other text.
std::optional<PublicKey> parse_public_key(std::string_view text);

// "2026-11-24T18:30:00Z" for seconds since 1970 UTC (ISO 8601).
std::string utc_text(uint64_t seconds);

// "number 7 of 2026-11-24T18:30:00Z", for messages.
std::string numbered(uint64_t sequence, uint64_t time);

}  // namespace blindfuse
