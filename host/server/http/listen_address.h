// The address on which a server listens: "127.0.0.1:8080", "localhost:0", "[::1]:8080",
// "unix:/run/server.socket".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace blindfuse::http {

struct ListenAddress {
  std::string host = "127.0.0.1";  // a name or an address, without brackets
  uint16_t port = 0;               // 0: any that is free
  std::string unix_path = {};      // not empty: a UNIX socket, and none of the above

  bool is_unix() const { return !unix_path.empty(); }

  bool operator==(const ListenAddress&) const = default;
};

// Throws UsageError for anything except unix:PATH and HOST:PORT, with brackets around an IPv6
// address.
ListenAddress parse_listen_address(std::string_view text);

// The text again.
std::string format_listen_address(const ListenAddress& address);

}  // namespace blindfuse::http
