#include "host/server/http/resource.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "src/base/utf8.h"

namespace blindfuse::http {
namespace {

// True if a list of entity tags, or *, has this one, weak or not. Our tags hold no commas.
bool lists_tag(std::string_view list, std::string_view tag) {
  return std::ranges::any_of(list_items(list), [&](std::string_view item) {
    if (item.starts_with("W/")) item.remove_prefix(2);
    return item == "*" || item == tag;
  });
}

// Returns the largest number for one beyond 64 bits: no resource has as many bytes.
std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t number = UINT64_MAX;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc::invalid_argument || rest != end) return std::nullopt;
  return number;
}

[[noreturn]] void refuse_range(uint64_t size) {
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
    if (*last == 0) refuse_range(size);
    return ByteRange{size - std::min(*last, size), size - 1};
  }
  const auto first = parse_number(range.substr(0, dash));
  if (!first || (!last && dash + 1 != range.size())) return std::nullopt;
  if (last && *last < *first) return std::nullopt;
  if (*first >= size) refuse_range(size);
  return ByteRange{*first, std::min(last.value_or(size - 1), size - 1)};
}

Response respond_with(const RequestHead& request, Resource resource) {
  const bool known = lists_tag(request.list("If-None-Match"), resource.entity_tag);
  // A client has no use for a range of another resource than the one of which it has a part.
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
