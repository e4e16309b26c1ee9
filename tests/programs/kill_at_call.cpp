// Loaded into a program (LD_PRELOAD), it counts the calls that change files (except pwrite, with
// which `build` writes to a file without a name that is gone with the process), and kills the
// program before the one of number BLINDFUSE_KILL_AT_CALL (from 1), or, when that writes, in the
// middle of it. At its end the program's count goes to the file BLINDFUSE_CALLS_TO.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace {

std::atomic<long> calls = 0;

bool is_last() {
  static const char* at = std::getenv("BLINDFUSE_KILL_AT_CALL");
  const long number = ++calls;
  return at != nullptr && number == std::strtol(at, nullptr, 10);
}

[[noreturn]] void end() {
  for (;;) kill(getpid(), SIGKILL);
}

void count() {
  if (is_last()) end();
}

mode_t mode_of(int flags, va_list arguments) {
  return (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
}

[[gnu::destructor]] void report() {
  const char* path = std::getenv("BLINDFUSE_CALLS_TO");
  if (path == nullptr) return;
  if (FILE* file = std::fopen(path, "w"); file != nullptr) {
    std::fprintf(file, "%ld\n", calls.load());
    std::fclose(file);
  }
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  if ((flags & O_CREAT) != 0) count();
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  if ((flags & O_CREAT) != 0) count();
  return static_cast<int>(syscall(SYS_openat, folder, path, flags, mode));
}

ssize_t write(int fd, const void* bytes, size_t size) {
  if (is_last()) {
    syscall(SYS_write, fd, bytes, size / 2);
    end();
  }
  return syscall(SYS_write, fd, bytes, size);
}

int mkdir(const char* path, mode_t mode) {
  count();
  return static_cast<int>(syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}

int mkdirat(int folder, const char* path, mode_t mode) {
  count();
  return static_cast<int>(syscall(SYS_mkdirat, folder, path, mode));
}

int rename(const char* from, const char* to) noexcept {
  return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  count();
  return static_cast<int>(syscall(SYS_renameat2, from_folder, from, to_folder, to, 0));
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to,
              unsigned flags) noexcept {
  count();
  return static_cast<int>(syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}

int unlink(const char* path) noexcept {
  count();
  return static_cast<int>(syscall(SYS_unlinkat, AT_FDCWD, path, 0));
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  count();
  return static_cast<int>(syscall(SYS_unlinkat, folder, path, flags));
}

int rmdir(const char* path) noexcept {
  count();
  return static_cast<int>(syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR));
}

int remove(const char* path) noexcept {
  if (unlinkat(AT_FDCWD, path, 0) == 0) return 0;
  return errno == EISDIR ? unlinkat(AT_FDCWD, path, AT_REMOVEDIR) : -1;
}

int ftruncate(int fd, off_t size) noexcept {
  count();
  return static_cast<int>(syscall(SYS_ftruncate, fd, size));
}

int fsync(int fd) {
  count();
  return static_cast<int>(syscall(SYS_fsync, fd));
}

int syncfs(int fd) noexcept {
  count();
  return static_cast<int>(syscall(SYS_syncfs, fd));
}

}  // extern "C"
