#include "src/program/printable.h"

#include <array>
#include <cstdint>
#include <cstdio>

#include "src/base/hex.h"
#include "src/base/utf8.h"

namespace blindfuse {

namespace {

// The code point of a well-formed sequence.
uint32_t decode_code_point(std::string_view sequence) {
  const auto lead = static_cast<uint8_t>(sequence[0]);
  if (sequence.size() == 1) return lead;
  uint32_t code_point = lead & (0x7Fu >> sequence.size());
  for (const char c : sequence.substr(1)) {
    code_point = code_point << 6 | (static_cast<uint8_t>(c) & 0x3Fu);
  }
  return code_point;
}

// Control characters would break the line or drive the terminal; the invisible and bidirectional
// ones would make the message read as something else.
bool is_printable(uint32_t code_point) {
  const auto within = [&](uint32_t first, uint32_t last) {
    return first <= code_point && code_point <= last;
  };
  return code_point >= 0x20 && !within(0x7F, 0x9F) && !within(0x200B, 0x200F) &&
         !within(0x2028, 0x202E) && !within(0x2060, 0x206F) && code_point != 0xFEFF;
}

std::string escape(std::string_view bytes) {
  std::string escaped;
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    escaped += "\\x" + encode_hex({&byte, 1});
  }
  return escaped;
}

}  // namespace

std::string printable(std::string_view text, size_t max_bytes) {
  std::string line;
  while (!text.empty()) {
    const size_t well_formed = utf8_sequence_bytes(text);
    const std::string_view piece = text.substr(0, well_formed == 0 ? 1 : well_formed);
    const bool plain = well_formed != 0 && is_printable(decode_code_point(piece));
    const std::string shown = plain ? std::string(piece) : escape(piece);
    if (line.size() + shown.size() > max_bytes) return line + "...";
    line += shown;
    text.remove_prefix(piece.size());
  }
  return line;
}

std::string quoted(std::string_view text, size_t max_bytes) {
  return '"' + printable(text, max_bytes) + '"';
}

namespace {

std::string scaled(double amount, const char* unit) {
  constexpr std::array<const char*, 5> kPrefixes = {"", "k", "M", "G", "T"};
  size_t prefix = 0;
  while (amount >= 1000 && prefix + 1 < kPrefixes.size()) {
    amount /= 1000;
    ++prefix;
  }
  std::array<char, 32> text;
  const int digits = prefix == 0 ? 0 : amount < 10 ? 2 : 1;
  std::snprintf(text.data(), text.size(), "%.*f%s%s%s", digits, amount, *unit == 0 ? "" : " ",
                kPrefixes[prefix], unit);
  return text.data();
}

}  // namespace

std::string human_bytes(uint64_t bytes) { return scaled(static_cast<double>(bytes), "B"); }

std::string human_count(double count) { return scaled(count, ""); }

std::string counted(uint64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

}  // namespace blindfuse
