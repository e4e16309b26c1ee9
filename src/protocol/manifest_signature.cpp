#include "src/protocol/manifest_signature.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "src/base/hex.h"

namespace blindfuse {

std::optional<PublicKey> parse_public_key(std::string_view text) {
  PublicKey key;
  if (text.size() != 2 * key.size() ||
      text.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
    return std::nullopt;
  }
  const auto bytes = decode_hex(text);
  std::copy(bytes->begin(), bytes->end(), key.begin());
  return key;
}

std::string utc_text(uint64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  // A year beyond 32 bits, or a time beyond those of this system.
  if (static_cast<uint64_t>(time) != seconds || gmtime_r(&time, &parts) == nullptr) {
    return "second " + std::to_string(seconds);
  }
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02dZ", parts.tm_year + 1900,
                parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
  return text;
}

std::string numbered(uint64_t sequence, uint64_t time) {
  return "number " + std::to_string(sequence) + " of " + utc_text(time);
}

}  // namespace blindfuse
