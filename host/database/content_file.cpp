#include "host/database/content_file.h"

#include <algorithm>
#include <vector>

#include "src/errors.h"

namespace blindfuse {

bool is_intact(const std::filesystem::path& path, uint64_t bytes, const Sha256Digest& content) try {
  const FileDescriptor file = open_for_reading(path);
  if (file_size(file, path) != bytes) return false;
  Sha256 hash;
  std::vector<uint8_t> block(1 << 20);
  for (uint64_t at = 0; at < bytes; at += block.size()) {
    const auto piece = std::span(block).first(std::min<uint64_t>(block.size(), bytes - at));
    read_exactly(file, at, piece, path);
    hash.update(piece);
  }
  return hash.finish() == content;
} catch (const BadInput&) {
  return false;  // missing, unreadable, or shrinking under our eyes
}

void commit_content(PendingFile& file, const std::filesystem::path& path, uint64_t bytes,
                    const Sha256Digest& content) {
  if (!is_intact(path, bytes, content)) file.commit_unsynced(path.filename());
}

}  // namespace blindfuse
