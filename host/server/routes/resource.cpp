#include "host/server/routes/resource.h"

#include <algorithm>

#include "host/server/routes/byte_range.h"

namespace blindfuse {
namespace {

uint64_t size_of(const Resource& resource) {
  uint64_t size = 0;
  for (const auto part : resource.parts) size += part.size();
  return size;
}

// The bytes of `range` alone.
std::vector<std::span<const uint8_t>> cut(const Resource& resource, const ByteRange& range) {
  std::vector<std::span<const uint8_t>> parts;
  uint64_t offset = 0;
  for (const auto part : resource.parts) {
    const uint64_t first = std::max(offset, range.first);
    const uint64_t end = std::min(offset + part.size(), range.last + 1);
    if (first < end) parts.push_back(part.subspan(first - offset, end - first));
    offset += part.size();
  }
  return parts;
}

// Whether a list of entity tags, or *, has this one, weak or not. Our tags hold no commas.
bool lists_tag(std::string_view list, std::string_view tag) {
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    std::string_view item = list.substr(begin, end - begin);
    item.remove_prefix(std::min(item.find_first_not_of(" \t"), item.size()));
    item = item.substr(0, item.find_last_not_of(" \t") + 1);
    if (item.starts_with("W/")) item.remove_prefix(2);
    if (item == "*" || item == tag) return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace

void send_resource(const httplib::Request& request, std::string_view range, Resource& resource,
                   httplib::Response& response) {
  const bool known = lists_tag(request.get_header_value("If-None-Match"), resource.entity_tag);
  // A range of something else than the client has the rest of would be of no use.
  const bool same = !request.has_header("If-Range") ||
                    request.get_header_value("If-Range") == resource.entity_tag;
  uint64_t size = size_of(resource);
  const auto part = known || !same ? std::nullopt : parse_byte_range(range, size);
  response.set_header("ETag", resource.entity_tag);
  response.set_header("Cache-Control", resource.cache_control);
  response.status = known ? 304 : part ? 206 : 200;
  if (known) return;
  if (part) {
    response.set_header("Content-Range", "bytes " + std::to_string(part->first) + "-" +
                                             std::to_string(part->last) + "/" +
                                             std::to_string(size));
    resource.parts = cut(resource, *part);
    size = part->size();
  }
  response.set_content_provider(size, resource.content_type,
                                // All in one call: between calls the library may stop.
                                [&parts = resource.parts](size_t, size_t, httplib::DataSink& sink) {
                                  return std::ranges::all_of(parts, [&](const auto bytes) {
                                    return sink.write(reinterpret_cast<const char*>(bytes.data()),
                                                      bytes.size());
                                  });
                                });
}

}  // namespace blindfuse
