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

  // The same for all ways to write one address.
  std::string text() const;
};

// Throws InputError, saying what a URL looks like, when `text` is none: other schemes, credentials,
// a query, odd characters.
Url parse_url(std::string_view text);

}  // namespace blindfuse
