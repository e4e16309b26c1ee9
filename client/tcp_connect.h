// TCP connections to a host that may have several addresses, some of them dead (RFC 8305).
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "client/patience.h"
#include "src/system/file.h"

namespace blindfuse {

// The time from one attempt to the next, to another address, if neither has an outcome.
inline constexpr std::chrono::milliseconds kNextAddressAfter{250};
// The limit for connecting, from the last attempt that began; and for a TLS handshake.
inline constexpr std::chrono::seconds kConnectTimeout{20};

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

// The addresses of a host in the order in which to try them. If there are none, `failure` says why.
std::vector<SocketAddress> addresses_of(const std::string& host, uint16_t port,
                                        std::string& failure);

// Connects to the first address that answers. Attempts run side by side: each begins
// kNextAddressAfter after the one before it, or when one fails. The sockets do not block, so that
// nothing waits but Patience. Returns a closed descriptor if no address answers, or if `patience`
// gave up. In the first case, `failure` says why.
FileDescriptor connect_tcp(std::span<const SocketAddress> addresses, Patience& patience,
                           std::string& failure);

}  // namespace blindfuse
