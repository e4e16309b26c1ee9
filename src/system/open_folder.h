// A folder that is open. All operations on its entries happen in this very folder, whatever becomes
// of its path meanwhile, and no symbolic link is followed. Errors are those of src/system/file.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "src/system/file.h"

namespace blindfuse {

// Tells a file from others that had its name before or will have it: its number in the file system,
// and when it was written last (nanoseconds since 1970) with how many bytes.
struct FileIdentity {
  uint64_t inode = 0;
  int64_t written_ns = 0;
  uint64_t bytes = 0;

  bool operator==(const FileIdentity&) const = default;
};

enum class EntryKind { kFile, kFolder, kLink, kOther };

struct EntryStatus {
  EntryKind kind = EntryKind::kOther;
  FileIdentity identity;
};

// The identity of an open file. ResourceError; `path` is for the message.
FileIdentity identity_of(const FileDescriptor& file, const std::filesystem::path& path);

class OpenFolder {
 public:
  // Opens the folder of this path, in which links are followed. InputError.
  explicit OpenFolder(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }

  // Returns a text that differs for any two folders of a machine, also for a folder and its copy.
  std::string identity() const;

  // The status of an entry; nothing when there is none. InputError when that cannot be seen.
  std::optional<EntryStatus> status(const std::string& name) const;

  // The names of all entries, sorted. InputError.
  std::vector<std::string> names() const;

  // Opens a folder in this one; nothing when there is no entry of that name. InputError when it is
  // not a folder. A link to a folder is not one.
  std::optional<OpenFolder> find_folder(const std::string& name) const;
  // Opens a folder in this one, and makes it if it is missing. InputError.
  OpenFolder make_folder(const std::string& name) const;

  // Creates a file, open for reading and writing, with the permissions that the umask leaves.
  // ResourceError, also when the name is taken.
  FileDescriptor create_file(const std::string& name) const;
  // Opens a file. InputError.
  FileDescriptor open_file(const std::string& name, int flags) const;

  // Gives a file another name; false when that is taken, by whatever it is. ResourceError.
  bool rename_if_free(const std::string& from, const std::string& to) const;
  // Replaces what has the name. ResourceError.
  void rename_over(const std::string& from, const std::string& to) const;

  // Returns false when the entry is still there afterwards.
  bool remove_file(const std::string& name) const noexcept;
  bool remove_empty_folder(const std::string& name) const noexcept;

  // Makes the entries durable. ResourceError.
  void sync() const;

 private:
  OpenFolder(std::filesystem::path path, FileDescriptor folder)
      : path_(std::move(path)), folder_(std::move(folder)) {}

  std::filesystem::path path_;
  FileDescriptor folder_;
};

}  // namespace blindfuse
