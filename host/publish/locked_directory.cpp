#include "host/publish/locked_directory.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "src/base/errors.h"
#include "src/program/log.h"

namespace blindfuse {
namespace {

namespace fs = std::filesystem;

constexpr size_t kRetiredMax = 1000;

std::string retired_text(std::vector<EpochId> retired, const EpochId& replaced) {
  retired.push_back(replaced);
  const size_t skip = retired.size() > kRetiredMax ? retired.size() - kRetiredMax : 0;
  std::string text;
  for (size_t i = skip; i < retired.size(); ++i) text += retired[i] + "\n";
  return text;
}

const char* description_of(EntryKind kind) {
  switch (kind) {
    case EntryKind::kFolder:
      return "a folder";
    case EntryKind::kLink:
      return "a symbolic link";
    default:
      return "something else";
  }
}

std::string refusal(const fs::path& root, const std::vector<std::string>& unknown) {
  const size_t more = unknown.size() - 1;
  return root.string() + " is not a database, since it has no manifest.json, and it holds \"" +
         unknown.front() + "\"" +
         (more > 0 ? " and " + std::to_string(more) + " more files or folders" : "") +
         " that no build is known to have made; choose a new or an empty directory (or, if a "
         "database is being copied there, wait for its manifest)";
}

// A build replaces files by their names. Anything else than a file does not come from a build.
void expect_file(const OpenFolder& root, const char* name) {
  const auto status = root.status(name);
  if (!status || status->kind == EntryKind::kFile) return;
  throw InputError((root.path() / name).string() + " must be a file, and is " +
                   description_of(status->kind) +
                   ", which a build does not replace; move it away, or choose another directory");
}

}  // namespace

RootFolder::RootFolder(const fs::path& path) : path_(path) {
  std::error_code error;
  is_made_ = fs::create_directory(path, error);
  if (error == std::errc::file_exists) {
    throw InputError(path.string() +
                     " is a file; --output takes a new, an empty or a database's directory");
  }
  if (error) {
    throw InputError("cannot create " + path.string() + ": " + error.message() +
                     (error == std::errc::no_such_file_or_directory
                          ? "; make the folder around it first, or correct the name"
                          : ""));
  }
}

RootFolder::~RootFolder() {
  if (is_made_) rmdir(path_.c_str());
}

LockedDirectory::LockedDirectory(const fs::path& root)
    : folder_(root),
      root_(root),
      directory_(root),
      had_lock_file_(root_.status(DatabaseDirectory::kLockFile).has_value()),
      lock_(take_lock()),
      first_manifest_(root_.status(DatabaseDirectory::kManifestFile)),
      journal_(root_),
      writer_(root_, journal_, published_) {
  try {
    check(journal_);
  } catch (const std::exception&) {
    undo_lock();
    throw;
  }
}

LockedDirectory::~LockedDirectory() {
  try {
    if (!clear()) return;
    if (has_manifest()) {
      journal_.remove();
    } else {
      undo();
    }
  } catch (const std::exception&) {
    // A path that stays is in the journal, for the next build.
  }
}

FileDescriptor LockedDirectory::take_lock() const {
  // A folder of another program gets no file of ours. The names that another build is making now
  // are known only once it is done.
  if (!had_lock_file_) check(BuildJournal(root_));
  auto lock = try_lock(directory_.lock_file());
  if (!lock) {
    throw InputError("another build is running in " + root_.path().string() +
                     "; wait until it ends");
  }
  if (!lock->is_open()) {
    log_warning("the file system of {} has no locks: let no two builds run there at once",
                root_.path().string());
  }
  return std::move(*lock);
}

bool LockedDirectory::has_manifest() const {
  return root_.status(DatabaseDirectory::kManifestFile).has_value();
}

void LockedDirectory::check(const BuildJournal& journal) const {
  expect_file(root_, DatabaseDirectory::kManifestFile);
  for (const DatabaseFolder& folder : kDatabaseFolders) root_.find_folder(folder.name);
  if (!has_manifest()) {
    const std::vector<std::string> unknown = unknown_entries(journal);
    if (!unknown.empty()) throw InputError(refusal(root_.path(), unknown));
    return;
  }
  // No server can load the epoch that we would publish next to a broken list.
  expect_file(root_, DatabaseDirectory::kRetiredFile);
  directory_.read_retired({});
}

// The entries of the directory and of its folders that neither a journal nor an epoch names.
std::vector<std::string> LockedDirectory::unknown_entries(const BuildJournal& journal) const {
  std::vector<std::string> unknown;
  const auto look_at = [&](const OpenFolder& folder, const std::string& file,
                           const std::string& entry) {
    const auto status = folder.status(file);
    if (!status) return;
    const bool is_known = status->kind == EntryKind::kFile &&
                          (published_.contains(entry) || journal.names_pending(entry) ||
                           journal.names_file(entry, status->identity));
    if (!is_known) unknown.push_back(entry);
  };
  for (const std::string& name : root_.names()) {
    if (name == DatabaseDirectory::kLockFile || name == BuildJournal::kFileName) continue;
    if (find_database_folder(name) == nullptr) {
      look_at(root_, name, name);
      continue;
    }
    const auto folder = root_.find_folder(name);
    if (!folder) continue;
    for (const std::string& file : folder->names()) look_at(*folder, file, name + "/" + file);
  }
  return unknown;
}

std::vector<std::string> LockedDirectory::unclaimed_files() const try {
  std::vector<std::string> files = unknown_entries(journal_);
  std::erase_if(files, [](const std::string& name) {
    return !is_content_name(name) && !is_temporary_name(split_entry(name).file);
  });
  return files;
} catch (const std::runtime_error&) {
  return {};  // a path that cannot be looked at is not a reason to fail: the epoch is published
}

void LockedDirectory::start_from(const Manifest& manifest, const EpochTable& table,
                                 const std::optional<ManifestSignature>& signature) {
  current_ = epoch_id(manifest);
  current_signature_ = signature;
  published_ = epoch_entries(manifest, table);
}

// The files of the epoch on disk, if that is the one we know or there is none. An epoch that we
// could not read is not ours to delete, nor is one whose publishing failed after its manifest had
// its place.
std::optional<std::set<std::string>> LockedDirectory::current_entries() const {
  try {
    if (!has_manifest()) {
      return current_ ? std::nullopt : std::optional(std::set<std::string>());
    }
    const ParsedManifest parsed = directory_.read_manifest();
    if (parsed.epoch != current_) return std::nullopt;
    return epoch_entries(parsed.manifest, parse_epoch_table(directory_.read_table(parsed.manifest),
                                                            parsed.manifest.layout));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

// Deletes the files that the journal names and the current epoch does not need. Returns true if
// none is left.
bool LockedDirectory::clear() {
  const auto kept = current_entries();
  if (!kept && !is_first_manifest()) return false;
  bool is_clear = true;
  for (const std::string& name : journal_.pending()) {
    if (!clear_entry(name, nullptr)) is_clear = false;
  }
  for (const auto& [name, identities] : journal_.files()) {
    if (kept && kept->contains(name)) continue;
    std::vector<FileIdentity> ours = identities;
    if (!kept) {
      // An epoch that cannot be read may need what was there before us, and nothing that we made.
      // (Clang 14, which builds the fuzz targets, lets no function capture `name` itself.)
      std::erase_if(ours, [&, &file = name](const FileIdentity& identity) {
        return journal_.is_inherited(file, identity);
      });
    }
    if (ours.size() < identities.size() || !clear_entry(name, &ours)) is_clear = false;
  }
  return is_clear;
}

// True if the manifest is still the file that it was at the start.
bool LockedDirectory::is_first_manifest() const try {
  const auto status = root_.status(DatabaseDirectory::kManifestFile);
  return status && first_manifest_ && status->identity == first_manifest_->identity;
} catch (const std::runtime_error&) {
  return false;
}

// Deletes a file; without identities its name is enough. False when it should be gone, and is not.
bool LockedDirectory::clear_entry(const std::string& name,
                                  const std::vector<FileIdentity>* identities) const try {
  const DatabaseEntry entry = split_entry(name);
  const std::string file(entry.file);
  std::optional<OpenFolder> folder;
  if (!entry.folder.empty()) {
    folder = root_.find_folder(std::string(entry.folder));
    if (!folder) return true;
  }
  const OpenFolder& at = folder ? *folder : root_;
  const auto status = at.status(file);
  if (!status || status->kind != EntryKind::kFile) return true;
  if (identities != nullptr && std::ranges::count(*identities, status->identity) == 0) return true;
  return at.remove_file(file);
} catch (const std::runtime_error&) {
  return false;
}

void LockedDirectory::publish(const Manifest& manifest, const EpochTable& table,
                              const std::optional<ManifestSignature>& signature) {
  const std::set<std::string> kept = epoch_entries(manifest, table);
  note_replaced_files(kept);
  sync_filesystem(root_.path());
  const EpochId epoch = epoch_id(manifest);
  published_ = kept;
  if (epoch == current_ && signature == current_signature_) return;
  if (current_ && epoch != current_) {
    // The list is written first: a crash in between leaves the current epoch in it, where readers
    // ignore it.
    writer_.replace(DatabaseDirectory::kRetiredFile,
                    retired_text(directory_.read_retired(*current_), *current_));
  }
  writer_.replace(DatabaseDirectory::kManifestFile, serialize_manifest(manifest, signature));
  current_ = epoch;
  current_signature_ = signature;
}

// The journal alone tells from now on that they are a build's.
void LockedDirectory::note_replaced_files(const std::set<std::string>& kept) {
  for (const DatabaseFolder& kind : kDatabaseFolders) {
    const auto folder = root_.find_folder(kind.name);
    if (!folder) continue;
    for (const std::string& name : published_) {
      const DatabaseEntry entry = split_entry(name);
      if (entry.folder != kind.name || kept.contains(name)) continue;
      const auto status = folder->status(std::string(entry.file));
      if (status && status->kind == EntryKind::kFile) journal_.add_file(name, status->identity);
    }
  }
}

// Removes the folders of the files that are cleared.
void LockedDirectory::undo() {
  // Empty folders alone go: another program may have begun to use one.
  for (const std::string& folder : journal_.folders()) root_.remove_empty_folder(folder);
  journal_.remove();
  undo_lock();
}

void LockedDirectory::undo_lock() const {
  if (!had_lock_file_) root_.remove_file(DatabaseDirectory::kLockFile);
}

}  // namespace blindfuse
