#include "src/base/hex.h"

#include <array>

namespace blindfuse {
namespace {

// The value of each character as a digit, or kNoDigit.
constexpr uint8_t kNoDigit = 0xff;
constexpr std::array<uint8_t, 256> kDigitValues = [] {
  std::array<uint8_t, 256> values;
  values.fill(kNoDigit);
  for (uint8_t i = 0; i < 10; ++i) values['0' + i] = i;
  for (uint8_t i = 0; i < 6; ++i) values['a' + i] = values['A' + i] = static_cast<uint8_t>(10 + i);
  return values;
}();

}  // namespace

std::string encode_hex(std::span<const uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (uint8_t byte : bytes) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

std::optional<std::string> decode_hex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes(text.size() / 2, '\0');
  uint8_t all = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const uint8_t high = kDigitValues[static_cast<uint8_t>(text[2 * i])];
    const uint8_t low = kDigitValues[static_cast<uint8_t>(text[2 * i + 1])];
    all |= high | low;  // above 15 only when one of them is not a digit
    bytes[i] = static_cast<char>(high << 4 | low);
  }
  if (all > 15) return std::nullopt;
  return bytes;
}

}  // namespace blindfuse
