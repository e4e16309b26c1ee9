// Base64 (RFC 4648 section 4), with padding.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace blindfuse {

std::string encode_base64(std::span<const uint8_t> bytes);
// Appends the digits to a text.
void append_base64(std::span<const uint8_t> bytes, std::string& text);

// Strict: returns nothing for white space, missing padding, another alphabet, or unused bits that
// are not zero.
std::optional<std::string> decode_base64(std::string_view text);

// Decodes into existing memory. Returns false, with anything in that memory, for invalid text, or
// if it does not decode to out.size() bytes. `out` may overlap `text` if it begins at the same
// place or before it.
bool decode_base64_into(std::string_view text, std::span<uint8_t> out);

constexpr uint64_t base64_length(uint64_t byte_count) { return (byte_count + 2) / 3 * 4; }

}  // namespace blindfuse
