// Loaded into a program (LD_PRELOAD), it makes the opening of a file wait forever, as a file system
// over a network does that has lost its server: of the file whose last name is BLINDFUSE_HANG_AT,
// as soon as there is a file BLINDFUSE_HANG_IF. That one is removed by the first call that waits.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdlib>
#include <cstring>

namespace {

void hang_if_told(const char* path) {
  static const char* const name = std::getenv("BLINDFUSE_HANG_AT");
  static const char* const switch_file = std::getenv("BLINDFUSE_HANG_IF");
  if (name == nullptr || switch_file == nullptr) return;
  const char* const slash = std::strrchr(path, '/');
  if (std::strcmp(slash == nullptr ? path : slash + 1, name) != 0) return;
  if (unlink(switch_file) != 0) return;
  for (;;) pause();
}

mode_t mode_of(int flags, va_list arguments) {
  return (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  hang_if_told(path);
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  hang_if_told(path);
  return static_cast<int>(syscall(SYS_openat, folder, path, flags, mode));
}

}  // extern "C"
