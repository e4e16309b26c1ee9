// Compressed files given where text is read, told by their first bytes.
#pragma once

#include <cstddef>
#include <string_view>

namespace blindfuse {

// Bytes that are enough to tell.
inline constexpr size_t kCompressionMagicBytes = 6;

// Throws InputError, with the command that decompresses, when `start`, the first bytes of the input
// called `name`, is that of a gzip, zstd, xz or zip file.
void refuse_compressed(std::string_view name, std::string_view start);

// The same by the end of a file's name: .gz, .zst, .xz or .zip.
void refuse_compressed_name(std::string_view path);

// Whether more bytes may show that it is one.
bool may_be_compressed(std::string_view start);

}  // namespace blindfuse
