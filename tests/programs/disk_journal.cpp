// Loaded into a program (LD_PRELOAD), it appends to the file BLINDFUSE_DISK_JOURNAL what the
// program does to files and folders, in its order: tests/programs/crashed_disk.h reads that. What
// it has no record for (shared writable mappings, vectored writes) ends the program.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include "tests/programs/disk_record.h"

namespace {

using blindfuse::program_testing::DiskRecord;

// The calls of several threads are done, and noted, one after another.
std::mutex& mutex() {
  static std::mutex the_mutex;
  return the_mutex;
}

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "the journal of the disk has no record for %s\n", what);
  abort();
}

void append(const void* bytes, size_t size) {
  static const int journal = [] {
    const char* path = std::getenv("BLINDFUSE_DISK_JOURNAL");
    if (path == nullptr) give_up("a journal without a name");
    return static_cast<int>(
        syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  }();
  if (syscall(SYS_write, journal, bytes, size) != static_cast<long>(size)) give_up("a full disk");
}

void note(DiskRecord record, const std::string& name = "", const std::string& other = "",
          const void* data = nullptr) {
  record.name_bytes = static_cast<uint32_t>(name.size());
  record.other_name_bytes = static_cast<uint32_t>(other.size());
  append(&record, sizeof record);
  append(name.data(), name.size());
  append(other.data(), other.size());
  if (record.data_bytes > 0) append(data, record.data_bytes);
}

struct Entry {
  uint64_t folder = 0;  // its inode
  std::string name;
};

// What a path names, whether or not it is there.
Entry entry_of(int folder, const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  struct stat status {};
  if (fstatat(folder, parent.c_str(), &status, 0) != 0) return {};
  return {status.st_ino, slash == std::string::npos ? path : path.substr(slash + 1)};
}

uint64_t inode_at(int folder, const char* path) {
  struct stat status {};
  return fstatat(folder, path, &status, AT_SYMLINK_NOFOLLOW) == 0 ? status.st_ino : 0;
}

// 0 for what is neither a file nor a folder.
uint64_t inode_of(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return 0;
  return S_ISREG(status.st_mode) || S_ISDIR(status.st_mode) ? status.st_ino : 0;
}

int open_at(int folder, const char* path, int flags, mode_t mode) {
  const std::lock_guard lock(mutex());
  const bool may_change = (flags & (O_CREAT | O_TRUNC)) != 0;
  const uint64_t before = may_change ? inode_at(folder, path) : 0;
  if ((flags & O_TMPFILE) == O_TMPFILE) give_up("files without a name");
  const int fd = static_cast<int>(syscall(SYS_openat, folder, path, flags, mode));
  const int error = errno;
  if (fd >= 0 && may_change) {
    const uint64_t inode = inode_of(fd);
    if (before == 0 && inode != 0) {
      const Entry entry = entry_of(folder, path);
      note({.kind = DiskRecord::kCreate, .first = entry.folder, .second = inode}, entry.name);
    } else if ((flags & O_TRUNC) != 0 && inode != 0) {
      note({.kind = DiskRecord::kTruncate, .first = inode, .second = 0});
    }
  }
  errno = error;
  return fd;
}

int make_folder(int folder, const char* path, mode_t mode) {
  const std::lock_guard lock(mutex());
  const int result = static_cast<int>(syscall(SYS_mkdirat, folder, path, mode));
  if (result == 0) {
    const Entry entry = entry_of(folder, path);
    note({.kind = DiskRecord::kMakeFolder, .first = entry.folder, .second = inode_at(folder, path)},
         entry.name);
  }
  return result;
}

int rename_entry(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  const std::lock_guard lock(mutex());
  const Entry old_entry = entry_of(from_folder, from);
  const Entry new_entry = entry_of(to_folder, to);
  const int result =
      static_cast<int>(syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
  if (result == 0) {
    note({.kind = DiskRecord::kRename, .first = old_entry.folder, .second = new_entry.folder},
         old_entry.name, new_entry.name);
  }
  return result;
}

int remove_entry(int folder, const char* path, int flags) {
  const std::lock_guard lock(mutex());
  const Entry entry = entry_of(folder, path);
  const int result = static_cast<int>(syscall(SYS_unlinkat, folder, path, flags));
  if (result == 0) note({.kind = DiskRecord::kRemove, .first = entry.folder}, entry.name);
  return result;
}

void note_write(int fd, const void* bytes, ssize_t written, int64_t offset) {
  const uint64_t inode = inode_of(fd);
  if (inode == 0 || written <= 0) return;
  note({.kind = DiskRecord::kWrite,
        .first = inode,
        .second = static_cast<uint64_t>(offset),
        .data_bytes = static_cast<uint64_t>(written)},
       "", "", bytes);
}

int sync_file(long call, int fd) {
  const std::lock_guard lock(mutex());
  const int result = static_cast<int>(syscall(call, fd));
  if (result != 0) return result;
  if (call == SYS_syncfs) {
    note({.kind = DiskRecord::kSyncAll});
  } else {
    note({.kind = DiskRecord::kSync, .first = inode_of(fd)});
  }
  return result;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return open_at(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return open_at(folder, path, flags, mode);
}

ssize_t write(int fd, const void* bytes, size_t size) {
  const std::lock_guard lock(mutex());
  const ssize_t written = syscall(SYS_write, fd, bytes, size);
  // Where the file's position was before, also for a file that is appended to.
  if (written > 0 && inode_of(fd) != 0) {
    note_write(fd, bytes, written, lseek(fd, 0, SEEK_CUR) - written);
  }
  return written;
}

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  const std::lock_guard lock(mutex());
  const ssize_t written = syscall(SYS_pwrite64, fd, bytes, size, offset);
  note_write(fd, bytes, written, offset);
  return written;
}

ssize_t writev(int, const iovec*, int) { give_up("writev"); }

void* mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) noexcept {
  if ((flags & MAP_SHARED) != 0 && (protection & PROT_WRITE) != 0 && fd >= 0 && inode_of(fd) != 0) {
    give_up("shared writable mappings");
  }
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, size, protection, flags, fd, offset));
}

int ftruncate(int fd, off_t size) noexcept {
  const std::lock_guard lock(mutex());
  const int result = static_cast<int>(syscall(SYS_ftruncate, fd, size));
  if (result == 0) {
    note({.kind = DiskRecord::kTruncate,
          .first = inode_of(fd),
          .second = static_cast<uint64_t>(size)});
  }
  return result;
}

int mkdir(const char* path, mode_t mode) { return make_folder(AT_FDCWD, path, mode); }

int mkdirat(int folder, const char* path, mode_t mode) { return make_folder(folder, path, mode); }

int rename(const char* from, const char* to) noexcept {
  return rename_entry(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  return rename_entry(from_folder, from, to_folder, to, 0);
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to,
              unsigned flags) noexcept {
  return rename_entry(from_folder, from, to_folder, to, flags);
}

int unlink(const char* path) noexcept { return remove_entry(AT_FDCWD, path, 0); }

int unlinkat(int folder, const char* path, int flags) noexcept {
  return remove_entry(folder, path, flags);
}

int rmdir(const char* path) noexcept { return remove_entry(AT_FDCWD, path, AT_REMOVEDIR); }

int remove(const char* path) noexcept {
  if (remove_entry(AT_FDCWD, path, 0) == 0) return 0;
  return errno == EISDIR ? remove_entry(AT_FDCWD, path, AT_REMOVEDIR) : -1;
}

int link(const char*, const char*) noexcept { give_up("link"); }

int linkat(int, const char*, int, const char*, int) noexcept { give_up("linkat"); }

int fsync(int fd) { return sync_file(SYS_fsync, fd); }

int fdatasync(int fd) { return sync_file(SYS_fdatasync, fd); }

int syncfs(int fd) noexcept { return sync_file(SYS_syncfs, fd); }

}  // extern "C"
