#include "host/server/http/response.h"

#include <algorithm>
#include <array>
#include <boost/beast/http/status.hpp>

#include "src/base/ascii.h"

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

}  // namespace blindfuse::http
