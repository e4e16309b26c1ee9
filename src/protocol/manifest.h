// The manifest of one epoch, which a client needs before anything else (docs/PROTOCOL.md, section
// 2).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/arithmetic/layout.h"
#include "src/base/errors.h"
#include "src/protocol/ed25519.h"
#include "src/protocol/key_hash.h"
#include "src/protocol/public_matrix.h"
#include "src/protocol/sha256.h"

namespace blindfuse {

// The largest integer of a manifest: every JSON library can hold it.
inline constexpr uint64_t kManifestIntegerMax = (uint64_t{1} << 53) - 1;

// PROTOCOL.md, section 2, Signature.
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

inline constexpr size_t kManifestBytesMax = 65'536;

using EpochId = std::string;  // 64 hex digits, in lower case

bool is_epoch_id(std::string_view text);

// The format is one of a later version: "blindfuse/4" and so on.
class NewerFormatError : public InputError {
 public:
  using InputError::InputError;
};

struct Manifest {
  Layout layout;
  Salt salt{};
  MatrixSeed seed{};
  Sha256Digest
      table{};  // of the serialized tables of shards and packs (src/protocol/epoch_table.h)
  Sha256Digest samples{};  // of the operator's sample keys

  bool operator==(const Manifest&) const = default;
};

// The manifest as JSON text, with its epoch id and its signature, if it has one. The text is
// indented and ends with a newline.
std::string serialize_manifest(const Manifest& manifest,
                               const std::optional<ManifestSignature>& signature = {});

// The SHA-256 of the canonical form of all members except the epoch itself and those of the
// signature.
EpochId epoch_id(const Manifest& manifest);

// The text that is signed: the whole manifest, with the members of `signature` except the signature
// itself.
std::string signed_text(const Manifest& manifest, const ManifestSignature& signature);

struct ParsedManifest {
  Manifest manifest;
  EpochId epoch;
  std::optional<ManifestSignature> signature;  // of the right form; it may be wrong
  std::string signed_text;  // what it is made for, with members that are unknown here
};

// Checks the format, mode, parameter set, every range, the failure bound, the epoch id, and the
// form of the signature. Throws InputError, also as NewerFormatError.
ParsedManifest parse_manifest(std::string_view text);

// True if there is a signature, and it is its signer's. Throws CannotVerify.
bool is_rightly_signed(const ParsedManifest& parsed);

// Throws InputError if there is a signature that is not its signer's.
void check_signature(const ParsedManifest& parsed);

}  // namespace blindfuse
