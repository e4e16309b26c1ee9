#include "src/system/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "src/base/errors.h"
#include "src/base/hex.h"
#include "src/base/utf8.h"
#include "src/system/random.h"

namespace blindfuse {
namespace {

std::string failure(const char* what, const std::filesystem::path& path) {
  return std::string("cannot ") + what + " " + path.string() + ": " + std::strerror(errno);
}

constexpr size_t kBufferBytes = 256 * 1024;
constexpr size_t kTemporaryRandomBytes = 12;

// A disk that is full or broken, and too few descriptors, are the machine's fault and not the
// input's.
[[noreturn]] void fail(const char* what, const std::filesystem::path& path) {
  throw ResourceError(failure(what, path));
}

void write_out(const FileDescriptor& file, std::span<const uint8_t> bytes,
               const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(file.get(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail("write to", path);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
}

bool is_lower_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

std::string temporary_name() {
  std::array<uint8_t, kTemporaryRandomBytes> random;
  fill_from_system(random);
  return std::string(kTemporaryPrefix) + encode_hex(random);
}

bool is_temporary_name(std::string_view name) {
  if (!name.starts_with(kTemporaryPrefix)) return false;
  name.remove_prefix(kTemporaryPrefix.size());
  return name.size() == 2 * kTemporaryRandomBytes && is_lower_hex(name);
}

FileDescriptor create_temporary_file(const std::filesystem::path& folder,
                                     std::filesystem::path& path, unsigned permissions) {
  path = folder / temporary_name();
  // mkstemp would not do: only their owner may read its files. A published file follows the umask,
  // and a process with threads cannot ask for that without changing it for all of them.
  FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, permissions));
  if (!file.is_open()) fail("create a file in", folder);
  return file;
}

bool is_passing_error(int error) {
  switch (error) {
    case EAGAIN:
    case EIO:
    case EMFILE:
    case ENFILE:
    case EHOSTDOWN:
    case ENOMEM:
    case ENOTCONN:  // of a file system whose server has gone
    case ESTALE:
    case ETIMEDOUT:
      return true;
    default:
      return false;
  }
}

bool is_unsupported(int error) {
  return error == EINVAL || error == EOPNOTSUPP || error == ENOSYS || error == ENOLCK;
}

void fail_to_read(const char* what, const std::filesystem::path& path) {
  if (is_passing_error(errno)) fail(what, path);
  throw InputError(failure(what, path));
}

FileDescriptor open_for_reading(const std::filesystem::path& path) {
  // O_NONBLOCK: do not wait for another program to open the other end of a pipe.
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) fail_to_read("open", path);
  return file;
}

uint64_t file_size(const FileDescriptor& file, const std::filesystem::path& path) {
  struct stat status {};
  if (fstat(file.get(), &status) != 0) fail_to_read("read", path);
  if (!S_ISREG(status.st_mode)) throw InputError("cannot read " + path.string() + ": not a file");
  return static_cast<uint64_t>(status.st_size);
}

void read_exactly(const FileDescriptor& file, uint64_t offset, std::span<uint8_t> bytes,
                  const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t got = pread(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_to_read("read", path);
    if (got == 0) throw InputError(path.string() + " is truncated");
    offset += static_cast<uint64_t>(got);
    bytes = bytes.subspan(static_cast<size_t>(got));
  }
}

namespace {

template <typename Bytes>
Bytes read_whole(const std::filesystem::path& path, uint64_t bytes_max) {
  const FileDescriptor file = open_for_reading(path);
  const uint64_t size = file_size(file, path);
  if (size > bytes_max) {
    throw InputError(path.string() + " has " + std::to_string(size) + " bytes; at most " +
                     std::to_string(bytes_max) + " were expected");
  }
  Bytes bytes(size, typename Bytes::value_type{});
  read_exactly(file, 0, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()}, path);
  return bytes;
}

}  // namespace

std::string read_file(const std::filesystem::path& path, uint64_t bytes_max) {
  return read_whole<std::string>(path, bytes_max);
}

std::string read_text_file(const std::filesystem::path& path, uint64_t bytes_max) {
  std::string text = read_file(path, bytes_max);
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  return text;
}

std::vector<uint8_t> read_file_bytes(const std::filesystem::path& path, uint64_t bytes_max) {
  return read_whole<std::vector<uint8_t>>(path, bytes_max);
}

void BufferedWriter::write(std::span<const uint8_t> bytes) {
  if (bytes.size() >= kBufferBytes) {
    flush();
    write_out(file_, bytes, path_);  // not copied: it may be most of what there is
    return;
  }
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  if (buffer_.size() >= kBufferBytes) flush();
}

void BufferedWriter::flush() {
  write_out(file_, buffer_, path_);
  buffer_.clear();
}

PendingFile::PendingFile(const std::filesystem::path& folder)
    : folder_(folder), writer_(create_temporary_file(folder, temporary_), folder) {}

PendingFile::~PendingFile() {
  if (writer_.file().is_open() && !temporary_.empty()) unlink(temporary_.c_str());
}

void PendingFile::write(std::string_view bytes) {
  write(std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
}

void PendingFile::commit(const std::string& name) {
  writer_.flush();
  const std::filesystem::path target = folder_ / name;
  sync_file(writer_.file(), target);
  if (rename(temporary_.c_str(), target.c_str()) != 0) fail("write", target);
  temporary_.clear();
  sync_folder(folder_);
}

void sync_file(const FileDescriptor& file, const std::filesystem::path& path) {
  if (fsync(file.get()) != 0 && !is_unsupported(errno)) fail("write", path);
}

void sync_folder(const std::filesystem::path& folder) {
  const FileDescriptor file(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file.is_open()) fail("write", folder);
  sync_file(file, folder);
}

void sync_filesystem(const std::filesystem::path& folder) {
  const FileDescriptor file(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file.is_open()) fail("write", folder);
  if (syncfs(file.get()) == 0) return;
  if (!is_unsupported(errno)) fail("write", folder);
  sync();  // which reports no failure
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw InputError("cannot create " + folder.string() + ": " + error.message());
}

std::optional<FileDescriptor> try_lock(const std::filesystem::path& path, unsigned permissions) {
  for (;;) {
    FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, permissions));
    if (!file.is_open()) throw InputError(failure("lock", path));
    if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return std::nullopt;
      if (is_unsupported(errno)) return FileDescriptor();
      throw ResourceError(failure("lock", path));
    }
    // The process that held it may have deleted the file; then what we locked is not what others
    // will find.
    struct stat locked {};
    struct stat named {};
    if (fstat(file.get(), &locked) == 0 && stat(path.c_str(), &named) == 0 &&
        locked.st_ino == named.st_ino && locked.st_dev == named.st_dev) {
      return file;
    }
  }
}

}  // namespace blindfuse
