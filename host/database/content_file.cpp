#include "host/database/content_file.h"

#include <fcntl.h>

#include <algorithm>
#include <vector>

#include "src/base/errors.h"

namespace blindfuse {
namespace {

// InputError when it ends early: it was truncated meanwhile.
bool has_content(const FileDescriptor& file, const std::filesystem::path& path, uint64_t bytes,
                 const Sha256Digest& content) {
  if (file_size(file, path) != bytes) return false;
  Sha256 hash;
  std::vector<uint8_t> block(1 << 20);
  for (uint64_t at = 0; at < bytes; at += block.size()) {
    const auto piece = std::span(block).first(std::min<uint64_t>(block.size(), bytes - at));
    read_exactly(file, at, piece, path);
    hash.update(piece);
  }
  return hash.finish() == content;
}

}  // namespace

bool is_intact(const std::filesystem::path& path, uint64_t bytes, const Sha256Digest& content) try {
  return has_content(open_for_reading(path), path, bytes, content);
} catch (const std::runtime_error&) {
  return false;  // missing, unreadable, or shrinking under our eyes
}

bool is_intact(const OpenFolder& folder, const std::string& name, uint64_t bytes,
               const Sha256Digest& content) try {
  return has_content(folder.open_file(name, O_RDONLY), folder.path() / name, bytes, content);
} catch (const std::runtime_error&) {
  return false;
}

}  // namespace blindfuse
