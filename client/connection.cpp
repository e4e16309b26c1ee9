#include "client/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "client/tcp_connect.h"

namespace blindfuse {
namespace {

SocketAttempt plain_result(ssize_t done, short events) {
  if (done >= 0) return {.done = done};
  const bool again = errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK;
  return {.wait_for = again ? events : short{0}};
}

int clamped(size_t size) { return static_cast<int>(std::min<size_t>(size, INT_MAX)); }

}  // namespace

void Connection::open(FileDescriptor socket) {
  close();
  opened_ = ProcessToken::current();
  was_kept_ = false;
  socket_ = std::move(socket);
}

bool Connection::secure(const TlsContext& tls, const std::string& host, long& verify_result) {
  const auto until = patience_.now() + kConnectTimeout;
  ssl_ = tls.connect(socket_.get(), host, patience_, until, verify_result);
  return ssl_ != nullptr;
}

// What waits for the server may fork. A child sends no TLS alert of its own, under the parent's
// keys and in the place of the parent's next record, and does not shut down the socket that both
// have.
void Connection::close() {
  const bool is_own = opened_.is_current();
  if (ssl_ && is_own) {
    clear_tls_errors();
    SSL_shutdown(ssl_.get());
  }
  ssl_.reset();  // sends nothing
  if (socket_.is_open() && is_own) shutdown(socket_.get(), SHUT_RDWR);
  socket_ = {};
}

void Connection::begin_request() {
  was_kept_ = is_open();
  got_byte_ = false;
  if (!was_kept_) return;
  char byte = 0;
  const SocketAttempt made =
      ssl_ ? tls_attempt(ssl_.get(), [&] { return SSL_peek(ssl_.get(), &byte, 1); })
           : plain_result(recv(socket_.get(), &byte, 1, MSG_PEEK), POLLIN);
  if (made.wait_for == 0) close();
}

template <class Attempt>
ssize_t Connection::complete(Attempt attempt) {
  for (;;) {
    if (!patience_.may_go_on()) return -1;
    const SocketAttempt made = attempt();
    if (made.wait_for == 0) return made.done;
    pollfd polled = {socket_.get(), made.wait_for, 0};
    if (!patience_.wait({&polled, 1}, patience_.now() + idle_, GaveUp::kNothingCame)) return -1;
  }
}

ssize_t Connection::read(char* bytes, size_t size) {
  const ssize_t got = complete([&] {
    return ssl_
               ? tls_attempt(ssl_.get(), [&] { return SSL_read(ssl_.get(), bytes, clamped(size)); })
               : plain_result(recv(socket_.get(), bytes, size, 0), POLLIN);
  });
  got_byte_ = got_byte_ || got > 0;
  return got;
}

bool Connection::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = complete([&] {
      return ssl_ ? tls_attempt(
                        ssl_.get(),
                        [&] { return SSL_write(ssl_.get(), bytes.data(), clamped(bytes.size())); })
                  : plain_result(send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
                                 POLLOUT);
    });
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

}  // namespace blindfuse
