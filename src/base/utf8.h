// Text: letters of ASCII, and well-formed UTF-8 (RFC 3629): no overlong forms, no surrogates,
// nothing above U+10FFFF.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace blindfuse {

// Letters as protocols define them, in any locale.
constexpr char lower_ascii(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

constexpr bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower_ascii(x) == lower_ascii(y); });
}

// Some editors put this mark at the beginning of a text.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// The length (1 to 4 bytes) of the well-formed sequence at the beginning of `text`. 0 if there is
// none.
size_t utf8_sequence_bytes(std::string_view text);

// The length of the longest well-formed prefix: text.size() if all of `text` is UTF-8, otherwise
// the offset of the first byte that does not begin a well-formed sequence.
size_t utf8_prefix_bytes(std::string_view text);

inline bool is_utf8(std::string_view text) { return utf8_prefix_bytes(text) == text.size(); }

}  // namespace blindfuse
