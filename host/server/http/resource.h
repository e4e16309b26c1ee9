// A resource that clients fetch, with an entity tag, and in part on request (RFC 9110, sections
// 8.8.3, 13 and 14).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "host/server/http/request_head.h"
#include "host/server/http/response.h"

namespace blindfuse::http {

struct Resource {
  std::string content_type = {};
  std::string entity_tag = {};  // strong, with its quotes
  std::string cache_control = {};
  bool has_ranges = false;                // whether a client may ask for a part
  std::shared_ptr<const Body> body = {};  // at least one byte
};

// The response to a GET or HEAD: 200, 206 for a range, 304 for a resource that the client has
// already. Throws Error (416) for a range beyond the end.
Response respond_with(const RequestHead& request, Resource resource);

// The part of a resource that a Range header asks for.
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
