// Recognizes compressed files that are given in place of text, by their first bytes.
#pragma once

#include <cstddef>
#include <string_view>

namespace blindfuse {

// This many first bytes suffice to recognize one.
inline constexpr size_t kCompressionMagicBytes = 6;

// Throws InputError if `start`, the first bytes of the input called `name`, is the start of a gzip,
// zstd, xz or zip file. The message has the command that decompresses it.
void refuse_compressed(std::string_view name, std::string_view start);

// Goes by the end of a file's name: .gz, .zst, .xz or .zip.
void refuse_compressed_name(std::string_view path);

// True if more bytes may show that it is a compressed file.
bool may_be_compressed(std::string_view start);

}  // namespace blindfuse
