#include "host/server/http/resource.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "host/server/http/byte_range.h"

namespace blindfuse::http {
namespace {

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

Response respond_with(const RequestHead& request, Resource resource) {
  const bool known = lists_tag(request.list("If-None-Match"), resource.entity_tag);
  // A range of something else than the client has the rest of would be of no use.
  const std::string_view same_as = request.header("If-Range");
  const bool may_cut = resource.has_ranges && request.method == "GET" && !known &&
                       (same_as.empty() || same_as == resource.entity_tag);
  const uint64_t size = resource.body->size();
  std::optional<ByteRange> range;
  if (may_cut) range = parse_byte_range(request.header("Range"), size);
  Response response{.status = known ? 304 : range ? 206 : 200};
  if (resource.has_ranges) response.set_header("Accept-Ranges", "bytes");
  response.set_header("ETag", resource.entity_tag);
  response.set_header("Cache-Control", resource.cache_control);
  if (known) return response;
  response.set_header("Content-Type", resource.content_type);
  if (range) {
    response.set_header("Content-Range", "bytes " + std::to_string(range->first) + "-" +
                                             std::to_string(range->last) + "/" +
                                             std::to_string(size));
  }
  response.range.first = range ? range->first : 0;
  response.range.size = range ? range->size() : size;
  response.range.body = std::move(resource.body);
  return response;
}

}  // namespace blindfuse::http
