// Formats amounts for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace blindfuse {

// "3.1 GB", "512 B": powers of 1000.
std::string human_bytes(uint64_t bytes);

// "512", "3.1k", "27.4M": powers of 1000.
std::string human_count(double count);

// "1 key", "2 keys": for nouns whose plural is an s.
std::string counted(uint64_t count, std::string_view noun);

}  // namespace blindfuse
