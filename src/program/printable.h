// Text for people: text of unknown origin (names of files, keys, messages of a server) that is made
// fit for a terminal and for one line, and amounts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace blindfuse {

inline constexpr size_t kExcerptBytes = 60;

// `text` with everything except printable UTF-8 written as \xNN, cut to about `max_bytes`.
std::string printable(std::string_view text, size_t max_bytes = kExcerptBytes);

// Returns printable() between double quotes.
std::string quoted(std::string_view text, size_t max_bytes = kExcerptBytes);

// "3.1 GB", "512 B": powers of 1000.
std::string human_bytes(uint64_t bytes);

// "512", "3.1k", "27.4M": powers of 1000.
std::string human_count(double count);

// "1 key", "2 keys": for nouns whose plural is an s.
std::string counted(uint64_t count, std::string_view noun);

}  // namespace blindfuse
