#include "host/server/http/response.h"

#include <array>
#include <boost/beast/http/status.hpp>

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

}  // namespace blindfuse::http
