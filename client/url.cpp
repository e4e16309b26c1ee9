#include "client/url.h"

#include <algorithm>
#include <charconv>

#include "src/base/errors.h"

namespace blindfuse {
namespace {

bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_host(std::string_view host) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [](char c) {
    return is_alphanumeric(c) || c == '-' || c == '.' || c == '_';
  });
}

bool is_ipv6(std::string_view host) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [](char c) {
    return (is_alphanumeric(c) && !(c > 'f' && c <= 'z') && !(c > 'F' && c <= 'Z')) || c == ':' ||
           c == '.';
  });
}

bool is_path(std::string_view path) {
  return std::all_of(path.begin(), path.end(), [](char c) {
    return is_alphanumeric(c) ||
           std::string_view("/-._~%!$&'()*+,;=:@").find(c) != std::string_view::npos;
  });
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return result;
}

[[noreturn]] void fail(std::string_view text, std::string_view why) {
  throw UsageError("'" + std::string(text) + "' is not the URL of a server: " + std::string(why) +
                   "; write it like http://127.0.0.1:8080 or https://example.org/words");
}

}  // namespace

std::string Url::text() const {
  std::string result = secure ? "https://" : "http://";
  const bool ipv6 = host.find(':') != std::string::npos;
  if (ipv6) result += '[';
  result += host;
  if (ipv6) result += ']';
  if (port != (secure ? 443 : 80)) {
    result += ':';
    result += std::to_string(port);
  }
  return result + prefix;
}

Url parse_url(std::string_view text) {
  Url url;
  const size_t scheme_end = text.find("://");
  if (text.starts_with("unix:")) {
    fail(text, "clients connect over TCP, and not to UNIX sockets");
  }
  if (scheme_end == std::string_view::npos)
    fail(text, "it does not begin with http:// or https://");
  const std::string scheme = lower(text.substr(0, scheme_end));
  if (scheme != "http" && scheme != "https") fail(text, "it is neither http nor https");
  url.secure = scheme == "https";
  const std::string_view rest = text.substr(scheme_end + 3);
  const size_t host_end = std::min(rest.find('/'), rest.size());
  std::string_view authority = rest.substr(0, host_end);
  std::string_view path = rest.substr(host_end);

  if (const size_t at = authority.rfind('@'); at != std::string_view::npos) {
    // The password does not belong in a message.
    fail(scheme + "://...@" + std::string(authority.substr(at + 1)),
         "it has a user or a password, which clients do not send (an API key is read from "
         "--api-key-file)");
  }
  const bool bracketed = authority.starts_with('[');
  const size_t bracket = authority.find(']');
  if (bracketed && bracket == std::string_view::npos) fail(text, "a bracket is not closed");
  const size_t colon = authority.find(':', bracketed ? bracket : 0);
  const std::string_view host =
      bracketed ? authority.substr(1, bracket - 1) : authority.substr(0, colon);
  if (!(bracketed ? is_ipv6(host) : is_host(host))) fail(text, "its host is not a host name");
  if (bracketed && bracket + 1 != std::min(colon, authority.size())) {
    fail(text, "something stands between the host and the port");
  }
  url.host = lower(host);
  url.port = url.secure ? 443 : 80;
  if (colon != std::string_view::npos) {
    const std::string_view digits = authority.substr(colon + 1);
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), url.port);
    if (error != std::errc() || end != digits.end() || url.port == 0) {
      fail(text, "its port is not a number from 1 to 65535");
    }
  }
  while (path.ends_with('/')) path.remove_suffix(1);
  if (!is_path(path)) fail(text, "its path has characters that belong in no path");
  url.prefix = path;
  return url;
}

}  // namespace blindfuse
