// The HTTP proxy through which a client reaches a server.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "client/url.h"

namespace blindfuse {

struct Proxy {
  std::string host;
  uint16_t port = 0;
  std::string credentials;  // "user:password", or nothing

  // "the proxy http://127.0.0.1:3128 (https_proxy)", with the option or variable that names it
  std::string name;
};

// Returns the proxy that `option` (--proxy) names, or that the environment names if it is empty:
// http_proxy, https_proxy or HTTPS_PROXY, by the server's scheme; then all_proxy or ALL_PROXY,
// unless no_proxy or NO_PROXY lists the server's host. Returns nothing for a host of this machine
// (localhost, 127.0.0.0/8, ::1). Throws InputError if the proxy is of a kind that clients cannot
// use.
std::optional<Proxy> proxy_for(const Url& server, const std::string& option);

}  // namespace blindfuse
