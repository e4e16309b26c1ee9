// A resource that clients fetch, with an entity tag, and in part on request (RFC 9110, sections
// 8.8.3, 13 and 14).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "host/server/http/body.h"
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

}  // namespace blindfuse::http
