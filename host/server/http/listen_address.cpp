#include "host/server/http/listen_address.h"

#include <charconv>

#include "src/base/errors.h"

namespace blindfuse::http {
namespace {

constexpr std::string_view kUnix = "unix:";

}  // namespace

ListenAddress parse_listen_address(std::string_view text) {
  const UsageError wrong(
      "cannot listen on " + std::string(text) +
      ": HOST:PORT is wanted, as in 127.0.0.1:8080 or [::1]:8080, with port 0 for "
      "any that is free, or unix:PATH");
  if (text.starts_with(kUnix)) {
    if (text == kUnix) throw wrong;
    return {"", 0, std::string(text.substr(kUnix.size()))};
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) throw wrong;
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || bracketed != (host.find(':') != std::string_view::npos)) throw wrong;
  ListenAddress address{std::string(host), 0, {}};
  const char* end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, address.port);
  if (error != std::errc() || rest != end) throw wrong;
  return address;
}

std::string format_listen_address(const ListenAddress& address) {
  if (address.is_unix()) return std::string(kUnix) + address.unix_path;
  const bool brackets = address.host.find(':') != std::string::npos;
  std::string text = brackets ? "[" : "";
  text += address.host;
  text += brackets ? "]:" : ":";
  return text + std::to_string(address.port);
}

}  // namespace blindfuse::http
