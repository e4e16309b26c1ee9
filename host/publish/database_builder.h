// Builds a database directory from the operator's pairs, in five steps: it loads them, lays them
// out, fills the matrices, makes the hints or packs, and publishes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/publish/input.h"
#include "host/publish/planner.h"
#include "host/publish/signing_key.h"
#include "src/engine/engine_maker.h"
#include "src/protocol/manifest.h"
#include "src/system/random.h"

namespace blindfuse {

struct BuildReport;

// Seconds since 1970 UTC.
uint64_t unix_seconds();

// The operator's choices. An option that is left open keeps the value of the directory's current
// epoch if that fits; otherwise the build chooses it.
struct BuildOptions {
  InputOptions input;
  std::optional<uint32_t> shard_count;
  std::optional<uint32_t> arity;
  std::optional<uint32_t> digest_bytes;
  // Bytes of value that every record has room for at least, so that a longer value can come later
  // without a new layout.
  uint32_t value_room = 0;
  std::optional<uint32_t> query_bits;
  std::optional<uint32_t> response_bits;
  std::optional<uint32_t> hint_bits;
  std::optional<Mode> mode;
  const LweParams* lwe = nullptr;
  std::optional<uint32_t> levels;  // of packed responses
  bool short_key = false;          // with two levels
  bool one_key = false;  // requests for one key, even if those of the epoch before were for several
  std::optional<BatchCode> batch;  // requests for several keys, with packed responses of one level
  uint64_t lookups_per_client = 100;
  // Signs the manifest; outlives the build. Without a key, and without drop_signature, the build
  // refuses a directory that is signed.
  const SigningKey* signing_key = nullptr;
  bool drop_signature = false;
  std::function<uint64_t()> clock = unix_seconds;  // of signatures
  // Takes a new salt, a new seed and a new layout, and builds every shard, of whatever kind and
  // number of keys.
  bool fresh = false;
  bool allow_shrink = false;   // to less than half of the keys
  bool allow_padding = false;  // where the longest value makes a database far larger than its input
  // The engine that makes hints or packs: the engine of this name, or the given engines with their
  // checks, which outlive the build.
  std::string engine = "auto";
  const EngineMaker* engines = nullptr;
  unsigned thread_count = 0;
  RandomSource random = fill_from_system;  // salt, seed, and the filters' seeds
  // Called once with the plan of the build, before the work that takes long. Survey and layout are
  // filled in.
  std::function<void(const BuildReport&)> on_planned;
};

struct BuildReport {
  EpochId epoch;
  Layout layout;
  Survey survey;
  std::optional<uint64_t> keys_before;  // of the epoch before, if there is one that can be read
  uint64_t input_bytes = 0;             // of keys and values
  uint64_t fullest_shard = 0;           // its keys; what chance gives: expected_fullest_shard()
  uint64_t truncated_values = 0;
  uint32_t shards_rebuilt = 0;
  uint32_t packs_rebuilt = 0;
  bool changed = false;  // false: the epoch was already what the input says
  // The signature that is published now. Its number and time stay the same if neither epoch nor
  // signer changed.
  std::optional<ManifestSignature> signature;
  bool signature_changed = false;            // signed again, or not signed any more
  bool layout_kept = false;                  // it is that of the previous epoch
  std::string layout_reason;                 // why the layout is what it is, in words
  std::vector<std::string> unclaimed_files;  // that look like a build's, and stay
  double seconds_reading = 0;                // sources read, keys hashed, pairs spooled
  double seconds_surveying = 0;              // duplicates, lengths, loads
  double seconds_filters = 0;                // filters and matrices
  double seconds_hint = 0;                   // hints, or packing tables and masks
  double seconds_total = 0;
};

// Builds or updates the database in `root`. The previous epoch stays whole if the build fails, and
// if the process is killed at any time. Throws InputError (also if another build holds the
// directory) or ResourceError.
BuildReport build_database(const std::vector<std::unique_ptr<KeyValueSource>>& sources,
                           const std::filesystem::path& root, const BuildOptions& options);

// The answer to a build that writes nothing.
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

// Reads the operator's pairs as a build does, and finds the layout that a build would choose. root:
// the database directory, which need not exist. Nothing: a new one. The only file that is
// written takes the pairs. It has no name, and lies in the folder for temporary files ($TMPDIR or
// /tmp). The directory is not locked. Throws InputError and ResourceError as build_database() does
// for its input.
DryRun dry_run(const std::vector<std::unique_ptr<KeyValueSource>>& sources,
               const std::optional<std::filesystem::path>& root, const BuildOptions& options);

}  // namespace blindfuse
