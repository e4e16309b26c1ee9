#include "src/program/amount.h"

#include <array>
#include <cstdio>

namespace blindfuse {
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
