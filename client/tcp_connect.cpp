#include "client/tcp_connect.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace blindfuse {
namespace {

std::string words_for(int error) {
  switch (error) {
    case ECONNREFUSED:
      return "connection refused; check the port, and that the server runs";
    case ENETUNREACH:
    case EHOSTUNREACH:
      return "there is no route to it; check the address and this machine's network";
    case ETIMEDOUT:
      return "no answer in " + std::to_string(kConnectTimeout.count()) + " s; check the address";
    default:
      return std::string(std::strerror(error)) + "; check the address";
  }
}

std::string words_for_name(int error) {
  if (error == EAI_NONAME) return "no host has this name; check the address";
  return std::string("its name cannot be looked up (") +
         (error == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(error)) +
         "); check the address, and this machine's network";
}

// Attempts to connect that have no outcome yet.
class Attempts {
 public:
  explicit Attempts(int& error) : error_(error) {}

  bool empty() const { return sockets_.empty(); }
  std::span<pollfd> polled() { return polled_; }

  // Returns the socket if it is connected now.
  FileDescriptor begin(const SocketAddress& address) {
    FileDescriptor made(
        socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!made.is_open()) {
      error_ = errno;
      return {};
    }
    const int yes = 1;
    setsockopt(made.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    const auto* const any_address = reinterpret_cast<const sockaddr*>(&address.storage);
    if (connect(made.get(), any_address, address.size) == 0) return made;
    if (errno == EINPROGRESS) {
      polled_.push_back({made.get(), POLLOUT, 0});
      sockets_.push_back(std::move(made));
    } else {
      error_ = errno;
    }
    return {};
  }

  // Returns an attempt that has connected, if there is one, and drops the attempts that failed.
  FileDescriptor take_connected() {
    for (size_t i = polled_.size(); i-- > 0;) {
      if (polled_[i].revents == 0) continue;
      int failure = 0;
      socklen_t size = sizeof failure;
      getsockopt(polled_[i].fd, SOL_SOCKET, SO_ERROR, &failure, &size);
      FileDescriptor done = std::move(sockets_[i]);
      if (failure == 0) return done;
      error_ = failure;
      polled_.erase(polled_.begin() + static_cast<ptrdiff_t>(i));
      sockets_.erase(sockets_.begin() + static_cast<ptrdiff_t>(i));
    }
    return {};
  }

 private:
  int& error_;  // of the last that failed
  std::vector<FileDescriptor> sockets_;
  std::vector<pollfd> polled_;  // of each socket
};

}  // namespace

std::vector<SocketAddress> addresses_of(const std::string& host, uint16_t port,
                                        std::string& failure) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found)) {
    failure = words_for_name(error);
    return {};
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found, freeaddrinfo);
  // The family of the first address and the other one take turns (RFC 8305, section 4).
  std::vector<SocketAddress> addresses[2];
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    SocketAddress& copy = addresses[address->ai_family != found->ai_family].emplace_back();
    std::memcpy(&copy.storage, address->ai_addr, address->ai_addrlen);
    copy.size = address->ai_addrlen;
  }
  std::vector<SocketAddress> sorted;
  for (size_t i = 0; i < std::max(addresses[0].size(), addresses[1].size()); ++i) {
    for (const std::vector<SocketAddress>& family : addresses) {
      if (i < family.size()) sorted.push_back(family[i]);
    }
  }
  return sorted;
}

FileDescriptor connect_tcp(std::span<const SocketAddress> addresses, Patience& patience,
                           std::string& failure) {
  if (addresses.empty()) return {};
  int error = ETIMEDOUT;
  Attempts attempts(error);
  auto begun = patience.now();
  bool is_next_due = true;
  while (patience.may_go_on() && (!addresses.empty() || !attempts.empty())) {
    if (!addresses.empty() && (is_next_due || attempts.empty())) {
      begun = patience.now();
      is_next_due = false;
      FileDescriptor connected = attempts.begin(addresses.front());
      addresses = addresses.subspan(1);
      if (connected.is_open()) return connected;
      continue;
    }
    const auto until = begun + (addresses.empty() ? kConnectTimeout
                                                  : std::chrono::milliseconds(kNextAddressAfter));
    if (!patience.wait(attempts.polled(), until, GaveUp::kNothingCame)) {
      if (patience.gave_up() != GaveUp::kNothingCame) break;
      patience.give_up(GaveUp::kNot);
      if (addresses.empty()) {
        error = ETIMEDOUT;
        break;
      }
    } else {
      FileDescriptor connected = attempts.take_connected();
      if (connected.is_open()) return connected;
    }
    is_next_due = true;
  }
  failure = words_for(error);
  return {};
}

}  // namespace blindfuse
