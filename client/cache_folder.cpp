#include "client/cache_folder.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "client/deadline.h"
#include "src/base/errors.h"
#include "src/base/hex.h"
#include "src/protocol/sha256.h"

namespace blindfuse {
namespace {

constexpr const char* kOtherFolder = "; name another folder with --cache";

template <class Work>
auto with_cure(const Work& work) {
  try {
    return work();
  } catch (const InputError& error) {
    throw InputError(error.what() + std::string(kOtherFolder));
  }
}

// Returns true if the lock was taken. It is not where another process holds it and LOCK_NB says not
// to wait, and where the file system has no locks: then no process can know that it is alone.
bool lock(const FileDescriptor& file, int operation, const std::filesystem::path& path) {
  while (flock(file.get(), operation) != 0) {
    // Some network file systems lock only what is open for writing, and say EBADF.
    if (errno == EWOULDBLOCK || errno == EBADF || is_unsupported(errno)) return false;
    if (errno != EINTR) {
      throw ResourceError("cannot lock " + path.string() + ": " + std::strerror(errno));
    }
  }
  return true;
}

FileDescriptor open_lock(const std::filesystem::path& path) {
  FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  // A folder that was filled before may only be read now.
  if (!file.is_open() && (errno == EROFS || errno == EACCES)) {
    const int why = errno;
    file = FileDescriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    errno = why;
  }
  if (!file.is_open()) {
    throw InputError("cannot open " + path.string() + ": " + std::strerror(errno) + kOtherFolder);
  }
  return file;
}

bool has_locks(const FileDescriptor& file) {
  return flock(file.get(), LOCK_SH | LOCK_NB) == 0 || !is_unsupported(errno);
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

void make_cache_folder(const std::filesystem::path& folder) {
  with_cure([&] { make_folder(folder); });
}

std::filesystem::path database_folder(const std::filesystem::path& cache,
                                      std::string_view address) {
  Sha256 hash;
  hash.update(address);
  return cache / encode_hex(hash.finish()).substr(0, 32);
}

FileDescriptor wait_for_lock(const std::filesystem::path& path, const ProgressCallback& progress) {
  if (!has_locks(open_lock(path))) return {};
  for (;;) {
    auto held = with_cure([&] { return try_lock(path); });
    if (held) return std::move(*held);
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
