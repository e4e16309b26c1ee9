#include "host/ingest/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "host/ingest/key_value_source.h"

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

namespace {

using namespace std::string_view_literals;

struct Compression {
  std::string_view name;
  std::string_view magic;  // a file's first bytes
  std::string_view extension;
  std::string_view command;  // writes what FILE holds to standard output
};

constexpr std::array<Compression, 4> kCompressions = {{
    {"gzip", "\x1f\x8b"sv, ".gz", "gunzip -c"},
    {"zstd", "\x28\xb5\x2f\xfd"sv, ".zst", "zstd -dc"},
    {"xz", "\xfd\x37\x7a\x58\x5a\x00"sv, ".xz", "xz -dc"},
    {"zip", "PK\x03\x04"sv, ".zip", "unzip -p"},
}};
static_assert(std::ranges::all_of(kCompressions, [](const Compression& compression) {
  return compression.magic.size() <= kCompressionMagicBytes;
}));

[[noreturn]] void refuse(std::string_view name, const Compression& compression) {
  fail_input(name, "this is " + std::string(compression.name) +
                       "-compressed; decompress it: " + std::string(compression.command) +
                       " FILE | blindfuse build - --format tsv|csv|ndjson ...");
}

}  // namespace

void refuse_compressed(std::string_view name, std::string_view start) {
  for (const Compression& compression : kCompressions) {
    if (start.starts_with(compression.magic)) refuse(name, compression);
  }
}

void refuse_compressed_name(std::string_view path) {
  for (const Compression& compression : kCompressions) {
    if (path.ends_with(compression.extension)) refuse(path, compression);
  }
}

bool may_be_compressed(std::string_view start) {
  return std::ranges::any_of(kCompressions, [&](const Compression& compression) {
    return compression.magic.starts_with(start);
  });
}

}  // namespace blindfuse
