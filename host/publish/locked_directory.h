// A database directory under the lock of one build. The build deletes only a build's own files:
// those that a journal names (host/database/build_journal.h), and those of an epoch that was
// published there.
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

// The folder of a database, made if it is missing. It is removed again if it was, and is empty at
// the end.
class RootFolder {
 public:
  // Throws InputError if it cannot be made, as where the folder around it is missing, too.
  explicit RootFolder(const std::filesystem::path& path);
  ~RootFolder();

  RootFolder(const RootFolder&) = delete;
  RootFolder& operator=(const RootFolder&) = delete;

 private:
  const std::filesystem::path path_;
  bool is_made_ = false;
};

class LockedDirectory {
 public:
  // Makes the directory, but none around it, if it is missing. Throws InputError if another build
  // holds it, if it has no manifest but entries that no journal names, and if an entry that a build
  // would have to replace is not a file, or not a folder where a folder belongs.
  explicit LockedDirectory(const std::filesystem::path& root);

  // Deletes the files that builds have made and that the current epoch does not need. If there is
  // no epoch, these are all of them. If the epoch cannot be read, deletes only files that were made
  // under this lock. Deletes nothing if the manifest is neither the one that was there nor the one
  // that was published.
  ~LockedDirectory();

  LockedDirectory(const LockedDirectory&) = delete;
  LockedDirectory& operator=(const LockedDirectory&) = delete;

  const DatabaseDirectory& get() const { return directory_; }
  DatabaseWriter& writer() { return writer_; }

  bool has_manifest() const;

  // The epoch that is there. `table` is empty if it cannot be read.
  void start_from(const Manifest& manifest, const EpochTable& table,
                  const std::optional<ManifestSignature>& signature = {});

  // Deletes the files of a killed build. They may take as much room as a database, and the room is
  // needed.
  void clear_leftovers() { clear(); }

  // Makes `manifest` the current epoch, durably and atomically, after all files that it refers to,
  // and notes the epoch that it replaces. These files have been written (unsynced is enough).
  // Publishes nothing if epoch and signature have not changed. Throws ResourceError.
  void publish(const Manifest& manifest, const EpochTable& table,
               const std::optional<ManifestSignature>& signature = {});

  // The names of files that look like a build's, and that no journal and no epoch names. A build
  // whose journal was lost left them, or an epoch whose table was lost.
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

  const RootFolder folder_;
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
