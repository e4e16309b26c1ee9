#include "src/protocol/manifest_signature.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

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
  constexpr uint64_t kSecondsADay = 86'400;
  // The last day is 31 December 9999.
  constexpr uint64_t kLastDay = 2'932'896;
  const uint64_t day = seconds / kSecondsADay, second = seconds % kSecondsADay;
  if (day > kLastDay) return "second " + std::to_string(seconds);
  // std::time_t would not do: it has 32 bits in WebAssembly.
  const std::chrono::year_month_day date{
      std::chrono::sys_days{std::chrono::days{static_cast<int>(day)}}};
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02u:%02u:%02uZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<unsigned>(second / 3600), static_cast<unsigned>(second / 60 % 60),
                static_cast<unsigned>(second % 60));
  return text;
}

std::string numbered(uint64_t sequence, uint64_t time) {
  return "number " + std::to_string(sequence) + " of " + utc_text(time);
}

}  // namespace blindfuse
