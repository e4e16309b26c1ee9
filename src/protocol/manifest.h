// The manifest of one epoch, which a client needs before anything else (docs/PROTOCOL.md, section
// 2).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/arithmetic/layout.h"
#include "src/base/errors.h"
#include "src/protocol/key_hash.h"
#include "src/protocol/manifest_signature.h"
#include "src/protocol/public_matrix.h"
#include "src/protocol/sha256.h"

namespace blindfuse {

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
