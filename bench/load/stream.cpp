#include "bench/load/stream.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <sys/socket.h>

#include <cerrno>
#include <climits>
#include <cstring>

#include "src/base/errors.h"

namespace blindfuse::load {
namespace {

bool is_address(const std::string& host) {
  in6_addr parsed;
  return inet_pton(AF_INET, host.c_str(), &parsed) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &parsed) == 1;
}

// The name that the certificate must have.
void expect_host(SSL* tls, const std::string& host) {
  if (is_address(host)) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls), host.c_str());
  } else {
    SSL_set1_host(tls, host.c_str());
    SSL_set_tlsext_host_name(tls, host.c_str());
  }
}

Stream::Status socket_status(ssize_t result) {
  if (result > 0) return Stream::Status::kDone;
  const bool waits = result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  return waits ? Stream::Status::kWait : Stream::Status::kClosed;
}

int int_size(size_t size) { return static_cast<int>(std::min<size_t>(size, INT_MAX)); }

}  // namespace

Stream::Stream(const Endpoint& endpoint)
    : socket_(
          socket(endpoint.address()->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
  if (!socket_.is_open()) {
    throw EngineTrouble(std::string("cannot open a connection: ") + std::strerror(errno));
  }
  const int on = 1;
  setsockopt(fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // What it says is asked for again by establish().
  (void)!connect(fd(), endpoint.address(), endpoint.address_bytes());
  if (endpoint.tls() == nullptr) return;
  tls_.reset(SSL_new(endpoint.tls()));
  if (!tls_ || SSL_set_fd(tls_.get(), fd()) != 1) throw EngineTrouble("cannot set up TLS");
  expect_host(tls_.get(), endpoint.url().host);
  SSL_set_connect_state(tls_.get());
}

Stream::Status Stream::establish() {
  if (established_) return Status::kDone;
  if (!connected_) {
    const Status status = connected();
    if (status != Status::kDone) return status;
    connected_ = true;
  }
  if (tls_) {
    ERR_clear_error();
    const Status status = tls_status(SSL_do_handshake(tls_.get()));
    if (status != Status::kDone) return status;
  }
  established_ = true;
  return Status::kDone;
}

Stream::Status Stream::connected() {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
    return Status::kClosed;
  }
  sockaddr_storage peer;
  size = sizeof peer;
  if (getpeername(fd(), reinterpret_cast<sockaddr*>(&peer), &size) == 0) return Status::kDone;
  return errno == ENOTCONN ? Status::kWait : Status::kClosed;
}

Stream::Status Stream::write(std::string_view& bytes) {
  while (!bytes.empty()) {
    ssize_t written = 0;
    Status status;
    if (tls_) {
      ERR_clear_error();
      written = SSL_write(tls_.get(), bytes.data(), int_size(bytes.size()));
      status = tls_status(static_cast<int>(written));
    } else {
      written = send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      status = socket_status(written);
    }
    if (status != Status::kDone) return status;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return Status::kDone;
}

Stream::Status Stream::read(std::span<char> bytes, size_t& count) {
  ssize_t got = 0;
  Status status;
  if (tls_) {
    ERR_clear_error();
    got = SSL_read(tls_.get(), bytes.data(), int_size(bytes.size()));
    status = tls_status(static_cast<int>(got));
  } else {
    got = recv(fd(), bytes.data(), bytes.size(), 0);
    status = socket_status(got);
  }
  count = status == Status::kDone ? static_cast<size_t>(got) : 0;
  return status;
}

Stream::Status Stream::tls_status(int result) const {
  if (result > 0) return Status::kDone;
  const int error = SSL_get_error(tls_.get(), result);
  const bool waits = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
  return waits ? Status::kWait : Status::kClosed;
}

}  // namespace blindfuse::load
