// The address of a server: http://host:port/prefix.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace blindfuse {

struct Url {
  bool secure = false;  // https
  std::string host;     // lower case; an IPv6 address without its brackets
  uint16_t port = 80;
  std::string prefix;  // before every route: "" or "/words", without a slash at the end

  // Returns the same text for all ways to write one address.
  std::string text() const;
};

// Throws InputError, which shows the form of a URL, if `text` is not one: it has another scheme,
// credentials, a query, or invalid characters.
Url parse_url(std::string_view text);

}  // namespace blindfuse
