// Files whose names are the hashes of their contents.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "src/protocol/sha256.h"
#include "src/system/open_folder.h"

namespace blindfuse {

// Whether a file is there, whole and unaltered. Reads all of it.
bool is_intact(const std::filesystem::path& path, uint64_t bytes, const Sha256Digest& content);

// The same for a file in `folder`. A symbolic link does not count as the file.
bool is_intact(const OpenFolder& folder, const std::string& name, uint64_t bytes,
               const Sha256Digest& content);

}  // namespace blindfuse
