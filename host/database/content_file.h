// Files that are named by the hash of their content.
#pragma once

#include <cstdint>
#include <filesystem>

#include "src/sha256.h"
#include "src/system/file.h"

namespace blindfuse {

// Whether a file is there, whole and unaltered: reads it all.
bool is_intact(const std::filesystem::path& path, uint64_t bytes, const Sha256Digest& content);

// Gives a written file its name, unsynced. A file of that name that is intact stays as it is, and
// the new one is dropped with its owner: replacing a file makes some file systems write the new one
// out at once, which costs milliseconds each.
void commit_content(PendingFile& file, const std::filesystem::path& path, uint64_t bytes,
                    const Sha256Digest& content);

}  // namespace blindfuse
