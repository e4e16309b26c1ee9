#include "src/base/utf8.h"

#include <cstdint>
#include <cstring>

namespace blindfuse {

namespace {

// Bytes of the run of ASCII, in whole words, that begins at `at`.
size_t skip_ascii_words(std::string_view text, size_t at) {
  uint64_t word = 0;
  while (text.size() - at >= sizeof word) {
    std::memcpy(&word, text.data() + at, sizeof word);
    if ((word & 0x8080808080808080u) != 0) break;
    at += sizeof word;
  }
  return at;
}

}  // namespace

size_t utf8_sequence_bytes(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte_at = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte_at(0);
  if (lead < 0x80) return 1;
  // 0x80..0xBF continue a sequence; 0xC0 and 0xC1 would only begin overlong ones.
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const size_t bytes = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (text.size() < bytes) return 0;
  // The second byte shows overlong forms, surrogates and too large code points.
  const uint8_t second_min = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t second_max = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (byte_at(1) < second_min || byte_at(1) > second_max) return 0;
  for (size_t i = 2; i < bytes; ++i) {
    if (byte_at(i) < 0x80 || byte_at(i) > 0xBF) return 0;
  }
  return bytes;
}

size_t utf8_prefix_bytes(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    at = skip_ascii_words(text, at);
    if (at == text.size()) break;
    const size_t bytes = utf8_sequence_bytes(text.substr(at));
    if (bytes == 0) return at;
    at += bytes;
  }
  return at;
}

}  // namespace blindfuse
