// The part of a resource that a Range header asks for (RFC 9110, section 14).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace blindfuse::http {

struct ByteRange {
  uint64_t first = 0;
  uint64_t last = 0;  // included

  uint64_t size() const { return last - first + 1; }
  bool operator==(const ByteRange&) const = default;
};

// The range of a resource of `size` bytes (at least 1) that a Range header's value names. Nothing
// if the header is to be ignored, as a server may: it has another unit than bytes or several
// ranges, or is broken. Throws Error (416) if the range lies beyond the end.
std::optional<ByteRange> parse_byte_range(std::string_view header, uint64_t size);

}  // namespace blindfuse::http
