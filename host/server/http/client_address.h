// How a server tells clients apart by their addresses.
#pragma once

#include <string>
#include <string_view>

namespace blindfuse::http {

// The network of one client: its IPv4 address, or the first 64 bits of its IPv6 address, of which
// every client has 2^64. An IPv4 address that is written as one of IPv6 (::ffff:192.0.2.1) is one
// of IPv4. Empty if the text is not an address.
std::string client_network(std::string_view address);

}  // namespace blindfuse::http
