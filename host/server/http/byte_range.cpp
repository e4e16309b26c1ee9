#include "host/server/http/byte_range.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "host/server/http/error.h"
#include "src/base/ascii.h"

namespace blindfuse::http {
namespace {

// Beyond 64 bits, the largest number: no resource has as many bytes.
std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t number = UINT64_MAX;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc::invalid_argument || rest != end) return std::nullopt;
  return number;
}

[[noreturn]] void refuse(uint64_t size) {
  throw Error(416, "the range begins beyond the last of " + std::to_string(size) + " bytes",
              {{"Content-Range", "bytes */" + std::to_string(size)}});
}

}  // namespace

std::optional<ByteRange> parse_byte_range(std::string_view header, uint64_t size) {
  constexpr std::string_view kUnit = "bytes=";
  if (!equal_ignoring_case(header.substr(0, kUnit.size()), kUnit)) return std::nullopt;
  const std::string_view range = header.substr(kUnit.size());
  const size_t dash = range.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto last = parse_number(range.substr(dash + 1));
  if (dash == 0) {  // the last this many bytes
    if (!last) return std::nullopt;
    if (*last == 0) refuse(size);
    return ByteRange{size - std::min(*last, size), size - 1};
  }
  const auto first = parse_number(range.substr(0, dash));
  if (!first || (!last && dash + 1 != range.size())) return std::nullopt;
  if (last && *last < *first) return std::nullopt;
  if (*first >= size) refuse(size);
  return ByteRange{*first, std::min(last.value_or(size - 1), size - 1)};
}

}  // namespace blindfuse::http
