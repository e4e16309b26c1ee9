// Well-formed UTF-8, as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string_view>

namespace blindfuse {

// Bytes (1 to 4) of the well-formed sequence that `text` begins with; 0 when it begins with none.
size_t utf8_sequence_bytes(std::string_view text);

// Length of the longest well-formed prefix: text.size() when all of `text` is UTF-8, otherwise the
// offset of the first byte that begins no well-formed sequence.
size_t utf8_prefix_bytes(std::string_view text);

}  // namespace blindfuse
