// Files that are named by the hash of their content.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "src/protocol/sha256.h"
#include "src/system/open_folder.h"

namespace blindfuse {

// Whether a file is there, whole and unaltered: reads it all.
bool is_intact(const std::filesystem::path& path, uint64_t bytes, const Sha256Digest& content);

// The same, of a file in `folder`, where a symbolic link is none.
bool is_intact(const OpenFolder& folder, const std::string& name, uint64_t bytes,
               const Sha256Digest& content);

}  // namespace blindfuse
