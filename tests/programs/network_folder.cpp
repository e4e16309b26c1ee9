// Loaded into a program (LD_PRELOAD), it fails calls as file systems over a network or in user
// space do: those that BLINDFUSE_FAILING_CALLS names (fsync, of a folder; syncfs; flock), with the
// errno BLINDFUSE_FAILING_WITH.
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace {

bool fails(const char* call) {
  static const char* const calls = std::getenv("BLINDFUSE_FAILING_CALLS");
  static const char* const error = std::getenv("BLINDFUSE_FAILING_WITH");
  if (calls == nullptr || error == nullptr || std::strstr(calls, call) == nullptr) return false;
  errno = std::atoi(error);
  return true;
}

}  // namespace

extern "C" {

int fsync(int fd) {
  struct stat status {};
  if (fstat(fd, &status) == 0 && S_ISDIR(status.st_mode) && fails("fsync")) return -1;
  return static_cast<int>(syscall(SYS_fsync, fd));
}

int syncfs(int fd) noexcept {
  return fails("syncfs") ? -1 : static_cast<int>(syscall(SYS_syncfs, fd));
}

int flock(int fd, int operation) noexcept {
  return fails("flock") ? -1 : static_cast<int>(syscall(SYS_flock, fd, operation));
}

}  // extern "C"
