#include "client/cache_folder.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "client/report_progress.h"
#include "src/base/errors.h"
#include "src/base/hex.h"
#include "src/protocol/sha256.h"

namespace blindfuse {
namespace {

// Whether the lock was taken. It is not where another process holds it and LOCK_NB says not to
// wait, and where the file system has no locks: then no process can know that it is alone.
bool lock(const FileDescriptor& file, int operation, const std::filesystem::path& path) {
  while (flock(file.get(), operation) != 0) {
    if (errno == EWOULDBLOCK || is_unsupported(errno)) return false;
    if (errno != EINTR) {
      throw ResourceError("cannot lock " + path.string() + ": " + std::strerror(errno));
    }
  }
  return true;
}

FileDescriptor open_lock(const std::filesystem::path& path) {
  FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!file.is_open()) {
    throw InputError("cannot open " + path.string() + ": " + std::strerror(errno));
  }
  return file;
}

}  // namespace

std::filesystem::path default_cache_folder() {
  // The XDG base directory specification says to ignore relative paths.
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && cache[0] == '/') {
    return std::filesystem::path(cache) / "blindfuse";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] != '\0') {
    return std::filesystem::path(home) / ".cache" / "blindfuse";
  }
  throw InputError(
      "neither XDG_CACHE_HOME nor HOME is set; name a folder for the hints with --cache");
}

std::filesystem::path database_folder(const std::filesystem::path& cache,
                                      std::string_view address) {
  Sha256 hash;
  hash.update(address);
  return cache / encode_hex(hash.finish()).substr(0, 32);
}

FileDescriptor wait_for_lock(const std::filesystem::path& path, const ProgressCallback& progress) {
  for (;;) {
    if (std::optional<FileDescriptor> held = try_lock(path)) return std::move(*held);
    report_progress(progress, {ClientStage::kWaitingForLock});
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

FileDescriptor lock_briefly(const std::filesystem::path& path) {
  FileDescriptor file = open_lock(path);
  lock(file, LOCK_EX, path);
  return file;
}

UseLock::UseLock(std::filesystem::path path) : path_(std::move(path)), file_(open_lock(path_)) {
  lock(file_, LOCK_SH, path_);
}

bool UseLock::run_alone(const std::function<void()>& work) {
  // The system lets go of the old lock before it gives the new one, so both ways end by taking the
  // shared one again.
  const bool alone = lock(file_, LOCK_EX | LOCK_NB, path_);
  try {
    if (alone) work();
  } catch (...) {
    lock(file_, LOCK_SH, path_);
    throw;
  }
  lock(file_, LOCK_SH, path_);
  return alone;
}

}  // namespace blindfuse
