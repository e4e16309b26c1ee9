// The manifest of one epoch: what a client needs first (docs/PROTOCOL.md, section 2).
#pragma once

#include <string>
#include <string_view>

#include "src/arithmetic/layout.h"
#include "src/protocol/key_hash.h"
#include "src/protocol/public_matrix.h"
#include "src/protocol/sha256.h"

namespace blindfuse {

inline constexpr size_t kManifestBytesMax = 65'536;

using EpochId = std::string;  // 64 hex digits, in lower case

bool is_epoch_id(std::string_view text);

struct Manifest {
  Layout layout;
  Salt salt{};
  MatrixSeed seed{};
  Sha256Digest
      table{};  // of the serialized tables of shards and packs (src/protocol/epoch_table.h)
  Sha256Digest samples{};  // of the operator's sample keys

  bool operator==(const Manifest&) const = default;
};

// The manifest as JSON text with its epoch id, indented, with a newline at the end.
std::string serialize_manifest(const Manifest& manifest);

// SHA-256 over the canonical form of every member but the epoch itself.
EpochId epoch_id(const Manifest& manifest);

struct ParsedManifest {
  Manifest manifest;
  EpochId epoch;
};

// Checks format, mode, parameter set, every range, the failure bound, and the epoch id. Throws
// InputError.
ParsedManifest parse_manifest(std::string_view text);

}  // namespace blindfuse
