#include "host/server/http/listening_socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "src/base/errors.h"
#include "src/base/utf8.h"

namespace blindfuse::http {
namespace {

constexpr std::string_view kUnix = "unix:";

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

InputError cannot_listen(const ListenAddress& address, const std::string& why) {
  return InputError("cannot listen on " + format_listen_address(address) + ": " + why);
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

// Returns no socket, and sets errno, when that fails.
FileDescriptor bind_to(const addrinfo& address, bool any_port) {
  FileDescriptor socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return socket;
  // A restart may come while old connections linger. A free port has none, and would be given to
  // two that do not listen yet. SO_REUSEPORT would let two servers share a port without knowing.
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

sockaddr_un unix_name(const ListenAddress& address) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (address.unix_path.size() >= sizeof name.sun_path) {
    throw cannot_listen(address, "the path of a UNIX socket has at most " +
                                     std::to_string(sizeof name.sun_path - 1) + " bytes");
  }
  std::ranges::copy(address.unix_path, name.sun_path);
  return name;
}

// True if this socket was left behind by a server that was killed.
bool is_abandoned(const sockaddr_un& name) {
  struct stat status {};
  if (lstat(name.sun_path, &status) != 0 || !S_ISSOCK(status.st_mode)) return false;
  const FileDescriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return connect(probe.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0 &&
         errno == ECONNREFUSED;
}

// The device and the number of a file; nothing where there is none.
std::optional<std::pair<dev_t, ino_t>> file_identity(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return std::nullopt;
  return std::pair(status.st_dev, status.st_ino);
}

void refuse_taken(const ListenAddress& address, const sockaddr_un& name) {
  if (file_identity(address.unix_path) && !is_abandoned(name)) {
    throw cannot_listen(address, std::strerror(EADDRINUSE));
  }
}

// A socket in the file system is visible to clients, and one that does not listen looks like one
// that an ended process left: so it is made when it listens.
FileDescriptor bind_unix(const ListenAddress& address) {
  const sockaddr_un name = unix_name(address);
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) throw cannot_listen(address, std::strerror(errno));
  refuse_taken(address, name);
  unlink(name.sun_path);
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) {
    throw cannot_listen(address, std::strerror(errno));
  }
  return socket;
}

std::string peer_of(const sockaddr_storage& name, socklen_t size) {
  if (name.ss_family == AF_UNIX) return "unix";
  char host[NI_MAXHOST];
  const auto* generic = reinterpret_cast<const sockaddr*>(&name);
  if (getnameinfo(generic, size, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0) return "-";
  return host;
}

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

ListeningSocket::ListeningSocket(const ListenAddress& address) : address_(address) {
  if (address.is_unix()) {
    refuse_taken(address, unix_name(address));
    return;
  }
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

bool ListeningSocket::is_local() const {
  if (address_.is_unix()) return true;
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&name), &size);
  if (name.ss_family == AF_INET6) {
    const in6_addr& address6 = reinterpret_cast<const sockaddr_in6&>(name).sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(&address6);
  }
  const in_addr address4 = reinterpret_cast<const sockaddr_in&>(name).sin_addr;
  return ntohl(address4.s_addr) >> 24 == IN_LOOPBACKNET;
}

ListeningSocket::~ListeningSocket() { close(); }

void ListeningSocket::close() {
  // The socket was moved from, or closed before.
  if (!socket_.is_open()) return;
  // Another server's socket may have its place by now.
  if (address_.is_unix() && file_identity(address_.unix_path) == file_) {
    unlink(address_.unix_path.c_str());
  }
  socket_ = FileDescriptor();
}

void ListeningSocket::listen() {
  if (address_.is_unix()) {
    socket_ = bind_unix(address_);
    file_ = file_identity(address_.unix_path);
  }
  if (::listen(socket_.get(), SOMAXCONN) != 0) throw cannot_listen(address_, std::strerror(errno));
}

ListeningSocket::Client ListeningSocket::accept() const {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  Client client{FileDescriptor(accept4(socket_.get(), reinterpret_cast<sockaddr*>(&name), &size,
                                       SOCK_CLOEXEC | SOCK_NONBLOCK)),
                ""};
  if (!client.socket.is_open()) return client;
  if (!address_.is_unix()) {
    set_option(client.socket.get(), IPPROTO_TCP, TCP_NODELAY);
    // Room in the kernel's buffer is progress only when little lies in it: a slow client takes
    // megabytes without any for a long time.
    const int unsent_bytes = 128 * 1024;
    setsockopt(client.socket.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent_bytes,
               sizeof unsent_bytes);
  }
  client.peer = peer_of(name, size);
  return client;
}

std::string client_network(std::string_view address) {
  const std::string text(address.substr(0, address.find('%')));  // without the interface
  in_addr address4{};
  in6_addr address6{};
  if (inet_pton(AF_INET6, text.c_str(), &address6) == 1) {
    if (!IN6_IS_ADDR_V4MAPPED(&address6)) {
      std::fill_n(address6.s6_addr + 8, 8, uint8_t{0});
      char network[INET6_ADDRSTRLEN];
      return inet_ntop(AF_INET6, &address6, network, sizeof network) + std::string("/64");
    }
    std::copy_n(address6.s6_addr + 12, 4, reinterpret_cast<uint8_t*>(&address4));
  } else if (inet_pton(AF_INET, text.c_str(), &address4) != 1) {
    return "";
  }
  char host[INET_ADDRSTRLEN];
  return inet_ntop(AF_INET, &address4, host, sizeof host);
}

bool is_local_name(std::string_view host) {
  if (host.starts_with('[')) {
    const std::string name(host.substr(1, host.find(']') - 1));
    in6_addr address{};
    return inet_pton(AF_INET6, name.c_str(), &address) == 1;
  }
  const std::string name(host.substr(0, host.find(':')));
  in_addr address{};
  return name.empty() || equal_ignoring_case(name, "localhost") ||
         inet_pton(AF_INET, name.c_str(), &address) == 1;
}

}  // namespace blindfuse::http
