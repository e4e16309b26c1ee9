// Hexadecimal text (RFC 4648 section 8), lower case when written.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace blindfuse {

std::string encode_hex(std::span<const uint8_t> bytes);

// Accepts both cases. Returns nothing if the length is odd or a character is not a hex digit.
std::optional<std::string> decode_hex(std::string_view text);

}  // namespace blindfuse
