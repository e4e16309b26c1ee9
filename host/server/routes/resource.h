// Bytes that clients fetch: with an entity tag, and in part if they like.
#pragma once

#include <httplib.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace blindfuse {

struct Resource {
  std::string content_type;
  std::string entity_tag;  // strong, with its quotes
  std::string cache_control;
  std::vector<std::span<const uint8_t>> parts;  // one after another; at least one byte in all
  std::shared_ptr<const void> owner;            // keeps the parts in memory while they are sent
};

// Answers a GET or HEAD: 200, 206 for a range, 304 for what the client has already. Nothing is
// copied: the resource, whose parts become those that are sent, outlives the response.
// `range` is the value of the request's Range
// header, or empty. Throws Refusal for a range beyond the end.
void send_resource(const httplib::Request& request, std::string_view range, Resource& resource,
                   httplib::Response& response);

}  // namespace blindfuse
