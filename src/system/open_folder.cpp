#include "src/system/open_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "src/base/errors.h"

namespace blindfuse {
namespace {

namespace fs = std::filesystem;

constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

std::string folder_failure(const char* what, const fs::path& path) {
  return std::string("cannot ") + what + " " + path.string() + ": " + std::strerror(errno);
}

FileIdentity identity_in(const struct stat& status) {
  return {.inode = status.st_ino,
          // The number is unsigned: some file systems know of years in which it overflows.
          .written_ns =
              static_cast<int64_t>(static_cast<uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000 +
                                   static_cast<uint64_t>(status.st_mtim.tv_nsec)),
          .bytes = static_cast<uint64_t>(status.st_size)};
}

EntryKind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return EntryKind::kFile;
  if (S_ISDIR(mode)) return EntryKind::kFolder;
  return S_ISLNK(mode) ? EntryKind::kLink : EntryKind::kOther;
}

}  // namespace

FileIdentity identity_of(const FileDescriptor& file, const fs::path& path) {
  struct stat status {};
  if (fstat(file.get(), &status) != 0) throw ResourceError(folder_failure("read", path));
  return identity_in(status);
}

OpenFolder::OpenFolder(const fs::path& path)
    : path_(path), folder_(open(path.c_str(), kFolderFlags)) {
  if (folder_.is_open()) return;
  fail_to_read("open", path);
}

std::string OpenFolder::identity() const {
  // The time of birth, which no program can set, tells a folder from one of another file system
  // with the same number; some file systems do not know it.
  struct statx status {};
  if (statx(folder_.get(), "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &status) != 0) {
    throw ResourceError(folder_failure("read", path_));
  }
  if ((status.stx_mask & STATX_BTIME) == 0) status.stx_btime = {};
  return std::to_string(status.stx_ino) + "." + std::to_string(status.stx_btime.tv_sec) + "." +
         std::to_string(status.stx_btime.tv_nsec);
}

std::optional<EntryStatus> OpenFolder::status(const std::string& name) const {
  struct stat status {};
  if (fstatat(folder_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return std::nullopt;
    fail_to_read("read", path_ / name);
  }
  return EntryStatus{kind_of(status.st_mode), identity_in(status)};
}

std::vector<std::string> OpenFolder::names() const {
  // Reading moves a descriptor, so this one is separate.
  const int again = openat(folder_.get(), ".", kFolderFlags);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(again < 0 ? nullptr : fdopendir(again),
                                                    closedir);
  if (!entries) {
    const int error = errno;
    if (again >= 0) close(again);
    errno = error;
    fail_to_read("read", path_);
  }
  std::vector<std::string> names;
  errno = 0;
  for (const dirent* entry; (entry = readdir(entries.get())) != nullptr; errno = 0) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  if (errno != 0) fail_to_read("read", path_);
  std::ranges::sort(names);
  return names;
}

std::optional<OpenFolder> OpenFolder::find_folder(const std::string& name) const {
  FileDescriptor folder(openat(folder_.get(), name.c_str(), kFolderFlags | O_NOFOLLOW));
  if (folder.is_open()) return OpenFolder(path_ / name, std::move(folder));
  if (errno == ENOENT) return std::nullopt;
  const int error = errno;
  const auto found = status(name);
  if (!found) return std::nullopt;
  if (found->kind == EntryKind::kLink) {
    throw InputError((path_ / name).string() +
                     " is a symbolic link, and must be a folder: move it away");
  }
  if (found->kind != EntryKind::kFolder) {
    throw InputError((path_ / name).string() + " is not a folder: move it away");
  }
  errno = error;
  fail_to_read("open", path_ / name);
}

OpenFolder OpenFolder::make_folder(const std::string& name) const {
  if (mkdirat(folder_.get(), name.c_str(), 0777) != 0 && errno != EEXIST) {
    throw InputError(folder_failure("create", path_ / name));
  }
  auto folder = find_folder(name);
  if (!folder) throw InputError("cannot open " + (path_ / name).string() + ": it was removed");
  return std::move(*folder);
}

FileDescriptor OpenFolder::create_file(const std::string& name) const {
  // mkstemp would not do: only their owner may read its files. A published file follows the umask,
  // and a process with threads cannot ask for that without changing it for all of them.
  FileDescriptor file(openat(folder_.get(), name.c_str(),
                             O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file.is_open()) throw ResourceError(folder_failure("create a file in", path_));
  return file;
}

FileDescriptor OpenFolder::open_file(const std::string& name, int flags) const {
  FileDescriptor file(
      openat(folder_.get(), name.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.is_open()) fail_to_read("open", path_ / name);
  return file;
}

bool OpenFolder::rename_if_free(const std::string& from, const std::string& to) const {
  const int folder = folder_.get();
  if (renameat2(folder, from.c_str(), folder, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno == EEXIST) return false;
  // Some file systems over the network cannot do both in one step.
  if (!is_unsupported(errno)) throw ResourceError(folder_failure("write", path_ / to));
  if (status(to)) return false;
  rename_over(from, to);
  return true;
}

void OpenFolder::rename_over(const std::string& from, const std::string& to) const {
  if (renameat(folder_.get(), from.c_str(), folder_.get(), to.c_str()) != 0) {
    throw ResourceError(folder_failure("write", path_ / to));
  }
}

bool OpenFolder::remove_file(const std::string& name) const noexcept {
  return unlinkat(folder_.get(), name.c_str(), 0) == 0 || errno == ENOENT;
}

bool OpenFolder::remove_empty_folder(const std::string& name) const noexcept {
  return unlinkat(folder_.get(), name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT;
}

void OpenFolder::sync() const { sync_file(folder_, path_); }

}  // namespace blindfuse
