// Where a server listens: "127.0.0.1:8080", "localhost:0", "[::1]:8080".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace blindfuse {

struct ListenAddress {
  std::string host = "127.0.0.1";  // a name or an address, without brackets
  uint16_t port = 0;               // 0: any that is free

  bool operator==(const ListenAddress&) const = default;
};

// Throws BadInput for anything but HOST:PORT, with brackets around an IPv6 address.
ListenAddress parse_listen_address(std::string_view text);

// HOST:PORT again.
std::string format_listen_address(const ListenAddress& address);

}  // namespace blindfuse
