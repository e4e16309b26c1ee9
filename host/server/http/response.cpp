#include "host/server/http/response.h"

#include <algorithm>
#include <array>
#include <boost/beast/http/status.hpp>
#include <charconv>
#include <utility>

#include "src/base/utf8.h"

namespace blindfuse::http {

void Response::set_header(std::string_view name, std::string value) {
  for (auto& [known, old] : headers) {
    if (!equal_ignoring_case(known, name)) continue;
    old = std::move(value);
    return;
  }
  headers.emplace_back(name, std::move(value));
}

std::string_view Response::header(std::string_view name) const {
  const auto at = std::ranges::find_if(
      headers, [&](const auto& header) { return equal_ignoring_case(header.first, name); });
  return at == headers.end() ? std::string_view() : std::string_view(at->second);
}

// The program never leaves the locale "C", whose names of days and months are those of HTTP.
std::string http_date(std::time_t time) {
  std::tm utc{};
  gmtime_r(&time, &utc);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &utc)};
}

std::string serialize_head(const Response& response, std::string_view connection) {
  namespace beast_http = boost::beast::http;
  const auto reason = beast_http::obsolete_reason(
      beast_http::int_to_status(static_cast<unsigned>(response.status)));
  std::string head = "HTTP/1.1 " + std::to_string(response.status) + " ";
  head.append(reason.data(), reason.size());
  head += "\r\nDate: " + http_date(std::time(nullptr)) + "\r\n";
  for (const auto& [name, value] : response.headers) head += name + ": " + value + "\r\n";
  // Neither of these has a body (RFC 9110, section 8.6).
  if (response.status != 204 && response.status != 304) {
    head += "Content-Length: " + std::to_string(response.body_bytes()) + "\r\n";
  }
  head += connection;
  head += "\r\n";
  return head;
}

std::string_view Output::at(uint64_t position) const {
  for (const std::string_view text : {std::string_view(head_), std::string_view(response_.text)}) {
    if (position < text.size()) return text.substr(position);
    position -= text.size();
  }
  const auto bytes = response_.range.from(position);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string_view Output::next(std::span<char> gathered) const {
  size_t size = 0;
  while (sent_ + size < size_) {
    const std::string_view bytes = at(sent_ + size);
    if (size == 0 && bytes.size() >= gathered.size()) return bytes;
    if (bytes.size() > gathered.size() - size) break;
    std::ranges::copy(bytes, gathered.begin() + static_cast<ptrdiff_t>(size));
    size += bytes.size();
  }
  return {gathered.data(), size};
}

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
