#include "src/base/base64.h"

#include <array>

namespace blindfuse {
namespace {

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kNotASextet = 0xc0;  // bits that no sextet has

constexpr std::array<uint8_t, 256> sextets() {
  std::array<uint8_t, 256> table{};
  table.fill(kNotASextet);
  for (size_t i = 0; i < 64; ++i) {
    table[static_cast<uint8_t>(kAlphabet[i])] = static_cast<uint8_t>(i);
  }
  return table;
}
constexpr std::array<uint8_t, 256> kSextets = sextets();

uint32_t sextet_of(char digit) { return kSextets[static_cast<uint8_t>(digit)]; }

size_t padding_of(std::string_view text) {
  if (text.ends_with("==")) return 2;
  return text.ends_with('=') ? 1 : 0;
}

// Decodes four digits to three bytes, for all groups of a text. Returns false when one of them is
// not a digit.
bool decode_groups(std::string_view text, uint8_t* out) {
  uint32_t all = 0;
  for (size_t at = 0; at < text.size(); at += 4, out += 3) {
    const uint32_t a = sextet_of(text[at]), b = sextet_of(text[at + 1]);
    const uint32_t c = sextet_of(text[at + 2]), d = sextet_of(text[at + 3]);
    all |= a | b | c | d;
    out[0] = static_cast<uint8_t>(a << 2 | b >> 4);
    out[1] = static_cast<uint8_t>(b << 4 | c >> 2);
    out[2] = static_cast<uint8_t>(c << 6 | d);
  }
  return (all & kNotASextet) == 0;
}

// The last group of a text, less its padding: two or three digits, whose unused bits are zero.
bool decode_rest(std::string_view digits, uint8_t* out) {
  const uint32_t a = sextet_of(digits[0]), b = sextet_of(digits[1]);
  const uint32_t c = digits.size() == 3 ? sextet_of(digits[2]) : 0;
  if (((a | b | c) & kNotASextet) != 0) return false;
  const uint32_t bits = a << 18 | b << 12 | c << 6;
  out[0] = static_cast<uint8_t>(bits >> 16);
  if (digits.size() == 3) out[1] = static_cast<uint8_t>(bits >> 8);
  return (bits & (digits.size() == 3 ? 0xffu : 0xffffu)) == 0;
}

}  // namespace

std::string encode_base64(std::span<const uint8_t> bytes) {
  std::string text;
  append_base64(bytes, text);
  return text;
}

void append_base64(std::span<const uint8_t> bytes, std::string& text) {
  const size_t begin = text.size();
  text.resize(begin + base64_length(bytes.size()), '=');
  const uint8_t* in = bytes.data();
  char* out = text.data() + begin;
  const size_t rest = bytes.size() % 3;
  for (const uint8_t* const end = in + (bytes.size() - rest); in != end; in += 3, out += 4) {
    out[0] = kAlphabet[in[0] >> 2];
    out[1] = kAlphabet[(in[0] << 4 | in[1] >> 4) & 63];
    out[2] = kAlphabet[(in[1] << 2 | in[2] >> 6) & 63];
    out[3] = kAlphabet[in[2] & 63];
  }
  if (rest == 0) return;
  const int second = rest == 2 ? in[1] : 0;
  out[0] = kAlphabet[in[0] >> 2];
  out[1] = kAlphabet[(in[0] << 4 | second >> 4) & 63];
  if (rest == 2) out[2] = kAlphabet[second << 2 & 63];
}

bool decode_base64_into(std::string_view text, std::span<uint8_t> out) {
  if (text.size() % 4 != 0) return false;
  const size_t padding = padding_of(text);
  if (text.size() / 4 * 3 - padding != out.size()) return false;
  const size_t whole = padding == 0 ? text.size() : text.size() - 4;
  if (!decode_groups(text.substr(0, whole), out.data())) return false;
  return padding == 0 || decode_rest(text.substr(whole, 4 - padding), out.data() + whole / 4 * 3);
}

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes(text.size() / 4 * 3 - padding_of(text), '\0');
  if (!decode_base64_into(text, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()})) {
    return std::nullopt;
  }
  return bytes;
}

}  // namespace blindfuse
