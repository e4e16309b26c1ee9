// Addresses: the one on which a server listens, its socket (TCP, or a UNIX socket in the file
// system), and those by which clients are told apart.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "src/system/file.h"

namespace blindfuse::http {

// "127.0.0.1:8080", "localhost:0", "[::1]:8080", "unix:/run/server.socket".
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

class ListeningSocket {
 public:
  // Takes the address. Clients are refused until listen(). Throws InputError, with the address and
  // the system's message, if that is impossible: there is no such host, or the port is in use or
  // not allowed. A UNIX socket on which no process listens any more is replaced. One on which a
  // process listens, or a file of another kind, is not.
  explicit ListeningSocket(const ListenAddress& address);
  // Removes the file of a UNIX socket, if it is still this socket's.
  ~ListeningSocket();
  ListeningSocket(ListeningSocket&&) noexcept = default;
  ListeningSocket& operator=(ListeningSocket&&) = delete;

  // Clients can connect from now on. Throws InputError if another program was faster.
  void listen();

  // The address as given, with the port that it got.
  const ListenAddress& address() const { return address_; }
  // True if only programs on this machine can connect: a UNIX socket or a loopback address.
  bool is_local() const;
  int fd() const { return socket_.get(); }

  struct Client {
    FileDescriptor socket;
    std::string peer;  // its address, without the port; "unix"
  };
  // The next client, non-blocking and without Nagle's delay. Not open if there is none now; errno
  // then has the reason.
  Client accept() const;

  // Clients are refused from now on.
  void close();

 private:
  ListenAddress address_;
  FileDescriptor socket_;
  std::optional<std::pair<dev_t, ino_t>> file_;  // of a UNIX socket that listens
};

// The network of one client: its IPv4 address, or the first 64 bits of its IPv6 address, of which
// every client has 2^64. An IPv4 address that is written as one of IPv6 (::ffff:192.0.2.1) is one
// of IPv4. Empty if the text is not an address.
std::string client_network(std::string_view address);

// True if a request's header Host, with or without a port, is localhost or an address, so that only
// this machine's own configuration leads there, or is empty. A web page under any other name may
// resolve that name to a loopback address (DNS rebinding), and is then of the same origin.
bool is_local_name(std::string_view host);

}  // namespace blindfuse::http
