#include "host/server/listening_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "src/errors.h"

namespace blindfuse {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

BadInput cannot_listen(const ListenAddress& address, const std::string& why) {
  return BadInput("cannot listen on " + format_listen_address(address) + ": " + why);
}

Addresses resolve(const ListenAddress& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(address.port);
  if (const int error = getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found)) {
    throw cannot_listen(address, gai_strerror(error));
  }
  return {found, &freeaddrinfo};
}

void set_option(int socket, int level, int option) {
  const int on = 1;
  setsockopt(socket, level, option, &on, sizeof on);
}

// Not open, with errno set, when that fails.
FileDescriptor bind_to(const addrinfo& address, bool any_port) {
  FileDescriptor socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return socket;
  // For a restart while old connections linger; a free port has none, and would be given to two
  // that do not listen yet. SO_REUSEPORT would let two servers share a port without knowing.
  if (!any_port) set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR);
  if (bind(socket.get(), address.ai_addr, address.ai_addrlen) != 0) {
    const int error = errno;
    socket = FileDescriptor();
    errno = error;
  }
  return socket;
}

uint16_t port_of(int socket) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  getsockname(socket, reinterpret_cast<sockaddr*>(&name), &size);
  return ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(name).sin6_port
                                          : reinterpret_cast<sockaddr_in&>(name).sin_port);
}

}  // namespace

ListeningSocket::ListeningSocket(const ListenAddress& address) : address_(address) {
  const Addresses addresses = resolve(address);
  int error = 0;
  for (const addrinfo* at = addresses.get(); at != nullptr && !socket_.is_open();
       at = at->ai_next) {
    socket_ = bind_to(*at, address.port == 0);
    error = errno;
  }
  if (!socket_.is_open()) throw cannot_listen(address, std::strerror(error));
  address_.port = port_of(socket_.get());
}

void ListeningSocket::listen() {
  if (::listen(socket_.get(), SOMAXCONN) != 0) throw cannot_listen(address_, std::strerror(errno));
}

FileDescriptor ListeningSocket::accept() const {
  FileDescriptor client(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (client.is_open()) set_option(client.get(), IPPROTO_TCP, TCP_NODELAY);
  return client;
}

}  // namespace blindfuse
