// The signature of a manifest (docs/PROTOCOL.md, section 2, Signature).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/errors.h"

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

// Of 64 lower-case hex digits; nothing for any other text.
std::optional<PublicKey> parse_public_key(std::string_view text);

// "2026-11-24T18:30:00Z" for seconds since 1970 UTC (ISO 8601).
std::string utc_text(uint64_t seconds);

// "number 7 of 2026-11-24T18:30:00Z", for messages.
std::string numbered(uint64_t sequence, uint64_t time);

// Verifies Ed25519 signatures (RFC 8032), by OpenSSL or, in builds without it, by the browser
// (client/web/crypto).
using PublicKey = std::array<uint8_t, 32>;
using Signature = std::array<uint8_t, 64>;

// The signature cannot be verified here: a browser may not know Ed25519.
class CannotVerify : public InputError {
 public:
  using InputError::InputError;
};

// Whether `signature` is that of `signer` for `message`. False also if `signer` is not a valid
// public key. Throws CannotVerify.
bool verify_ed25519(const PublicKey& signer, std::string_view message, const Signature& signature);

}  // namespace blindfuse
