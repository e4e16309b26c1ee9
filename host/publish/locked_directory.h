// A database directory under the lock of one build, which deletes only what is a build's own:
// what a journal names (host/database/build_journal.h), or an epoch that was published there.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "host/database/build_journal.h"
#include "host/database/directory.h"
#include "host/publish/database_writer.h"
#include "src/protocol/epoch_table.h"
#include "src/protocol/manifest.h"
#include "src/system/file.h"
#include "src/system/open_folder.h"

namespace blindfuse {

// The folders of a path that were not there; those that are empty at the end go again.
class MissingFolders {
 public:
  explicit MissingFolders(const std::filesystem::path& path);
  ~MissingFolders();

  MissingFolders(const MissingFolders&) = delete;
  MissingFolders& operator=(const MissingFolders&) = delete;

 private:
  std::vector<std::filesystem::path> paths_;  // innermost first
};

class LockedDirectory {
 public:
  // Makes the directory if it is missing. InputError when another build holds it; when it has no
  // manifest, and anything that no journal names; and when what a build would have to replace there
  // is not a file, or a folder of it not a folder.
  explicit LockedDirectory(const std::filesystem::path& root);

  // Deletes what the current epoch does not need of what builds have made, and everything that was
  // made when there is no epoch. When the epoch cannot be read: only what was made under this lock.
  // Nothing when the manifest is not the one that was there and not the one that was published.
  ~LockedDirectory();

  LockedDirectory(const LockedDirectory&) = delete;
  LockedDirectory& operator=(const LockedDirectory&) = delete;

  const DatabaseDirectory& get() const { return directory_; }
  DatabaseWriter& writer() { return writer_; }

  bool has_manifest() const;

  // The epoch that is there; `table` is empty when it cannot be read.
  void start_from(const Manifest& manifest, const EpochTable& table,
                  const std::optional<ManifestSignature>& signature = {});

  // Deletes what a killed build left: it may be as large as a database, and the room is needed.
  void clear_leftovers() { clear(); }

  // Makes `manifest` the current epoch, durably and atomically, after everything that it refers to;
  // notes the epoch that it replaces. The files that it refers to have been written (unsynced is
  // enough). Nothing is published when epoch and signature are those that are there. ResourceError.
  void publish(const Manifest& manifest, const EpochTable& table,
               const std::optional<ManifestSignature>& signature = {});

  // The names of files that look like a build's, and that no journal and no epoch names: what a
  // build left whose journal was lost, or an epoch whose table was.
  std::vector<std::string> unclaimed_files() const;

 private:
  void check(const BuildJournal& journal) const;
  FileDescriptor take_lock() const;
  std::vector<std::string> unknown_entries(const BuildJournal& journal) const;
  std::optional<std::set<std::string>> current_entries() const;
  bool clear();
  bool is_first_manifest() const;
  bool clear_entry(const std::string& name, const std::vector<FileIdentity>* identities) const;
  void note_replaced_files(const std::set<std::string>& kept);
  void undo();
  void undo_lock() const;

  const MissingFolders missing_;
  const OpenFolder root_;
  const DatabaseDirectory directory_;
  const bool had_lock_file_;
  std::set<std::string> published_;  // the names of the current epoch's files
  FileDescriptor lock_;
  const std::optional<EntryStatus> first_manifest_;
  BuildJournal journal_;
  std::optional<EpochId> current_;  // nothing: no manifest, or none that can be read
  std::optional<ManifestSignature> current_signature_;
  DatabaseWriter writer_;
};

}  // namespace blindfuse
