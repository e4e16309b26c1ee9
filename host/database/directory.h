// The database directory: where each file is, and what may be deleted (docs/OPERATING.md shows it).
//
//   manifest.json              the current epoch; written last, atomically
//   tables/<sha256>.table      the tables of shards and packs
//   shards/<sha256>.matrix     one shard's columns, R * W bytes
//   hints/<sha256>.hint        one shard's hint, or one pack's mask, bit-packed
//   packs/<sha256>.pack        one pack's packing table, where responses are packed
//   samples/<sha256>.json      keys for `inspect --verify`
//   retired.txt                earlier epoch ids, one a line, the newest last
//   .lock                      held by a build
//
// Every file but the manifest is named by its content, so that epochs share what did not change and
// a half-written epoch is never seen.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "src/epoch_table.h"
#include "src/manifest.h"

namespace blindfuse {

class DatabaseDirectory {
 public:
  explicit DatabaseDirectory(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path tables() const { return root_ / "tables"; }
  std::filesystem::path shards() const { return root_ / "shards"; }
  std::filesystem::path hints() const { return root_ / "hints"; }
  std::filesystem::path packs() const { return root_ / "packs"; }
  std::filesystem::path samples() const { return root_ / "samples"; }
  std::filesystem::path manifest_file() const { return root_ / "manifest.json"; }
  std::filesystem::path lock_file() const { return root_ / ".lock"; }

  static std::string table_name(const Sha256Digest& content);
  static std::string matrix_name(const Sha256Digest& content);
  static std::string hint_name(const Sha256Digest& content);
  static std::string pack_name(const Sha256Digest& content);
  static std::string samples_name(const Sha256Digest& content);

  // BadInput when that cannot be seen.
  bool has_manifest() const;

  // The manifest's text; BadInput when the directory is not a database.
  std::string read_manifest_text() const;

  // The same, parsed; BadInput, naming the file, when it is no manifest.
  ParsedManifest read_manifest() const;

  // The serialized table of a manifest (src/epoch_table.h), checked against its hash. BadInput.
  std::vector<uint8_t> read_table(const Manifest& manifest) const;

  // The text of a manifest's sample keys, checked against its hash. BadInput.
  std::string read_samples(const Manifest& manifest, uint64_t bytes_max) const;

  // Earlier epochs, the newest last, without `current`. BadInput when the file holds anything else.
  std::vector<EpochId> read_retired(const EpochId& current) const;

  // Refuses, with BadInput, a directory that holds files which are not a database's.
  void refuse_foreign_files() const;

  // Makes `manifest` the current epoch, durably and atomically, after everything that it refers to;
  // notes the epoch that it replaces. The files that it refers to have been written (unsynced is
  // enough).
  void publish(const Manifest& manifest, const std::optional<EpochId>& replaced) const;

  // Deletes every file that `manifest` and `table` do not refer to; all of a database's files when
  // there is none. Only under the lock. Never fails: what cannot be deleted stays.
  void collect_garbage(const std::optional<Manifest>& manifest, const EpochTable& table) const;

  // Undoes the making of the folders, as far as they hold nothing.
  void remove_empty_folders() const;

 private:
  std::filesystem::path root_;
};

}  // namespace blindfuse
