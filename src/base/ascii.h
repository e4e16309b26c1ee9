// Classifies letters as protocols define them, in any locale.
#pragma once

#include <algorithm>
#include <string_view>

namespace blindfuse {

constexpr char lower_ascii(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

constexpr bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower_ascii, lower_ascii);
}

}  // namespace blindfuse
