#include "host/ingest/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "host/ingest/input_error.h"

namespace blindfuse {

namespace {

[[noreturn]] void fail_system(std::string_view name, int error) {
  fail_input(name, std::generic_category().message(error) + "; expected a readable file");
}

// Standard input may be a file that another program has read the beginning of.
std::optional<uint64_t> bytes_ahead(int descriptor, const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return std::nullopt;
  const off_t position = ::lseek(descriptor, 0, SEEK_CUR);
  if (position < 0) return std::nullopt;
  return static_cast<uint64_t>(std::max<off_t>(status.st_size - position, 0));
}

}  // namespace

FileByteSource::FileByteSource(int descriptor, Ownership ownership, std::string name)
    : descriptor_(descriptor), ownership_(ownership), name_(std::move(name)) {
  struct stat status = {};
  int error = ::fstat(descriptor_, &status) == 0 ? 0 : errno;
  // Opening a directory succeeds; only reading it would fail.
  if (error == 0 && S_ISDIR(status.st_mode)) error = EISDIR;
  if (error != 0) {
    if (ownership_ == Ownership::kOwned) ::close(descriptor_);
    fail_system(name_, error);
  }
  bytes_total_ = bytes_ahead(descriptor_, status);
  if (bytes_total_) ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_SEQUENTIAL);
}

FileByteSource::~FileByteSource() {
  if (ownership_ == Ownership::kOwned) ::close(descriptor_);
}

size_t FileByteSource::read(std::span<char> into) {
  for (;;) {
    const ssize_t got = ::read(descriptor_, into.data(), into.size());
    if (got >= 0) return static_cast<size_t>(got);
    if (errno != EINTR) fail_system(name_, errno);
  }
}

MemoryByteSource::MemoryByteSource(std::string_view bytes, std::string name)
    : rest_(bytes), name_(std::move(name)), bytes_total_(bytes.size()) {}

size_t MemoryByteSource::read(std::span<char> into) {
  const size_t count = rest_.copy(into.data(), into.size());
  rest_.remove_prefix(count);
  return count;
}

std::unique_ptr<ByteSource> open_file(const std::string& path) {
  for (;;) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor >= 0) {
      return std::make_unique<FileByteSource>(descriptor, FileByteSource::Ownership::kOwned, path);
    }
    if (errno != EINTR) fail_system(path, errno);
  }
}

std::unique_ptr<ByteSource> standard_input() {
  return std::make_unique<FileByteSource>(STDIN_FILENO, FileByteSource::Ownership::kBorrowed,
                                          "standard input");
}

}  // namespace blindfuse
