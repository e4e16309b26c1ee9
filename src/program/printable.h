// Makes text of unknown origin fit for a terminal and for one line: names of files, keys, messages
// of a server.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace blindfuse {

inline constexpr size_t kExcerptBytes = 60;

// `text` with everything except printable UTF-8 written as \xNN, cut to about `max_bytes`.
std::string printable(std::string_view text, size_t max_bytes = kExcerptBytes);

// Returns printable() between double quotes.
std::string quoted(std::string_view text, size_t max_bytes = kExcerptBytes);

}  // namespace blindfuse
