// The database directory: where each file is (docs/OPERATING.md shows it).
//
//   manifest.json              the current epoch; written last, atomically
//   tables/<sha256>.table      the tables of shards and packs
//   shards/<sha256>.matrix     one shard's columns, R * W bytes
//   hints/<sha256>.hint        one shard's hint, or one pack's mask, a bit sequence
//   packs/<sha256>.pack        one pack's packing table, where responses are packed
//   samples/<sha256>.json      keys for `inspect --verify`
//   retired.txt                earlier epoch ids, one a line, the newest last
//   .lock                      held by a build
//   .build-journal             what a build has made (host/database/build_journal.h)
//
// Every file except the manifest has the hash of its content as its name. So epochs share the files
// that did not change, and a half-written epoch is never seen.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "src/protocol/epoch_table.h"
#include "src/protocol/manifest.h"
#include "src/protocol/sha256.h"
#include "src/system/open_folder.h"

namespace blindfuse {

// True if the file is there, whole and unaltered: its name is the hash of its content. Reads all of
// it.
bool is_intact(const std::filesystem::path& path, uint64_t bytes, const Sha256Digest& content);

// The file is in `folder`. A symbolic link does not count as the file.
bool is_intact(const OpenFolder& folder, const std::string& name, uint64_t bytes,
               const Sha256Digest& content);

// The folders of a database directory, and the names of the files in them. Each file has the
// SHA-256 of its content as its name. Names in a database are relative to its directory.
struct DatabaseFolder {
  const char* name;
  const char* suffix;  // of its files

  // "SHA256.suffix"
  std::string file_name(const Sha256Digest& content) const;
  // "folder/SHA256.suffix"
  std::string entry_name(const Sha256Digest& content) const;
};

inline constexpr DatabaseFolder kTablesFolder{"tables", ".table"};
inline constexpr DatabaseFolder kShardsFolder{"shards", ".matrix"};
inline constexpr DatabaseFolder kHintsFolder{"hints", ".hint"};
inline constexpr DatabaseFolder kPacksFolder{"packs", ".pack"};
inline constexpr DatabaseFolder kSamplesFolder{"samples", ".json"};
inline constexpr std::array kDatabaseFolders = {kTablesFolder, kShardsFolder, kHintsFolder,
                                                kPacksFolder, kSamplesFolder};

// Null if a database has no folder of that name.
const DatabaseFolder* find_database_folder(std::string_view name);

// A name, split at its last slash. Without a slash the folder is empty.
struct DatabaseEntry {
  std::string_view folder;
  std::string_view file;
};
DatabaseEntry split_entry(std::string_view name);

// True if it has the form "folder/SHA256.suffix", with a folder's own suffix.
bool is_content_name(std::string_view name);

// The names of all files that an epoch refers to, as far as `table` lists them.
std::set<std::string> epoch_entries(const Manifest& manifest, const EpochTable& table);

class DatabaseDirectory {
 public:
  static constexpr const char* kManifestFile = "manifest.json";
  static constexpr const char* kRetiredFile = "retired.txt";
  static constexpr const char* kLockFile = ".lock";

  explicit DatabaseDirectory(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path tables() const { return root_ / kTablesFolder.name; }
  std::filesystem::path shards() const { return root_ / kShardsFolder.name; }
  std::filesystem::path hints() const { return root_ / kHintsFolder.name; }
  std::filesystem::path packs() const { return root_ / kPacksFolder.name; }
  std::filesystem::path samples() const { return root_ / kSamplesFolder.name; }
  std::filesystem::path manifest_file() const { return root_ / kManifestFile; }
  std::filesystem::path lock_file() const { return root_ / kLockFile; }

  static std::string table_name(const Sha256Digest& content);
  static std::string matrix_name(const Sha256Digest& content);
  static std::string hint_name(const Sha256Digest& content);
  static std::string pack_name(const Sha256Digest& content);
  static std::string samples_name(const Sha256Digest& content);

  // Throws InputError if that cannot be determined.
  bool has_manifest() const;

  // The time of the manifest's file; 0 if it cannot be read.
  std::time_t published_at() const;

  // The manifest's text. Throws InputError if the directory is not a database.
  std::string read_manifest_text() const;

  // Reads and parses the manifest. Throws InputError, which names the file, if it is not a
  // manifest.
  ParsedManifest read_manifest() const;

  // Throws the same with the directory and the version of the program.
  [[noreturn]] void fail_newer(const NewerFormatError& error) const;

  // The serialized table of a manifest (src/protocol/epoch_table.h), checked against its hash.
  // Throws InputError.
  std::vector<uint8_t> read_table(const Manifest& manifest) const;

  // The text of a manifest's sample keys, checked against its hash. Throws InputError.
  std::string read_samples(const Manifest& manifest, uint64_t bytes_max) const;

  // Earlier epochs, the newest last, without `current`. Throws InputError if the file has any other
  // content.
  std::vector<EpochId> read_retired(const EpochId& current) const;

 private:
  std::filesystem::path root_;
};

}  // namespace blindfuse
