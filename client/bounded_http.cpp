#include "client/bounded_http.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

namespace blindfuse {
namespace {

constexpr size_t kContinueBytes = 12;  // of "HTTP/1.1 100"

bool is_continue(std::string_view line_start) {
  return line_start.starts_with("HTTP/1.") && line_start.ends_with(" 100");
}

SocketAttempt plain_result(ssize_t done, short events) {
  if (done >= 0) return {.done = done};
  const bool again = errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK;
  return {.wait_for = again ? events : short{0}};
}

// Whether the socket is connected now.
bool connect_socket(int socket, const addrinfo& address, Patience& patience,
                    httplib::Error& error) {
  const int yes = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (connect(socket, address.ai_addr, address.ai_addrlen) == 0) return true;
  if (errno != EINPROGRESS) return false;
  const auto until = patience.now() + kConnectTimeout;
  if (!patience.wait(socket, POLLOUT, until, GaveUp::kNothingCame)) {
    error = httplib::Error::ConnectionTimeout;
    return false;
  }
  int failure = 0;
  socklen_t size = sizeof failure;
  return getsockopt(socket, SOL_SOCKET, SO_ERROR, &failure, &size) == 0 && failure == 0;
}

// Tries one address of the host after another. The socket does not block, so that nothing waits but
// Patience, which can be told to stop.
socket_t connect_to(const std::string& host, int port, Patience& patience, httplib::Error& error) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  error = httplib::Error::Connection;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found) != 0) {
    return INVALID_SOCKET;
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found, freeaddrinfo);
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    if (!patience.may_go_on()) break;
    const int made = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
                            address->ai_protocol);
    if (made < 0) continue;
    error = httplib::Error::Connection;
    if (connect_socket(made, *address, patience, error)) return made;
    close(made);
    if (patience.gave_up() == GaveUp::kNothingCame) patience.give_up(GaveUp::kNot);
  }
  return INVALID_SOCKET;
}

}  // namespace

// The connection as the library reads and writes it, for one request.
class BoundedHttpClient::Stream : public httplib::Stream {
 public:
  Stream(const Socket& socket, std::chrono::seconds idle, Patience& patience)
      : socket_(socket.sock), ssl_(socket.ssl), idle_(idle), patience_(patience) {}

  bool is_readable() const override {
    return at_ < end_ || (ssl_ != nullptr && SSL_pending(ssl_) > 0) || wait_to_read(POLLIN);
  }
  bool is_writable() const override { return wait_to_write(POLLOUT); }

  ssize_t read(char* bytes, size_t size) override {
    if (size == 0) return 0;
    ssize_t got = 0;
    if (at_ == end_ && size >= buffer_.size()) {
      got = receive(bytes, size);
    } else {
      if (at_ == end_) {
        const ssize_t filled = receive(buffer_.data(), buffer_.size());
        if (filled <= 0) return filled;
        at_ = 0;
        end_ = static_cast<size_t>(filled);
      }
      const size_t part = std::min(size, end_ - at_);
      std::memcpy(bytes, buffer_.data() + at_, part);
      at_ += part;
      got = static_cast<ssize_t>(part);
    }
    if (got > 0 && !limits_.accept(bytes, static_cast<size_t>(got))) {
      patience_.give_up(GaveUp::kHeadTooLong);
      return -1;
    }
    return got;
  }

  ssize_t write(const char* bytes, size_t size) override {
    const int count = static_cast<int>(std::min<size_t>(size, INT_MAX));
    for (;;) {
      if (!patience_.may_go_on()) return -1;
      const SocketAttempt made =
          ssl_ == nullptr ? plain_result(::send(socket_, bytes, size, MSG_NOSIGNAL), POLLOUT)
                          : tls_attempt(ssl_, [&] { return SSL_write(ssl_, bytes, count); });
      if (made.wait_for == 0) return made.done;
      if (!wait_to_write(made.wait_for)) return -1;
    }
  }

  // The library asks for these on a server alone.
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}

  socket_t socket() const override { return socket_; }

  bool got_byte() const { return head_until_.has_value(); }
  bool has_rest() const { return at_ < end_; }

 private:
  ssize_t receive(char* bytes, size_t size) {
    const int count = static_cast<int>(std::min<size_t>(size, INT_MAX));
    for (;;) {
      if (!patience_.may_go_on()) return -1;
      if (is_head_late()) {
        patience_.give_up(GaveUp::kHeadLate);
        return -1;
      }
      const SocketAttempt made =
          ssl_ == nullptr ? plain_result(::recv(socket_, bytes, size, 0), POLLIN)
                          : tls_attempt(ssl_, [&] { return SSL_read(ssl_, bytes, count); });
      if (made.done > 0 && !head_until_) head_until_ = patience_.now() + kHeadTimeout;
      if (made.wait_for == 0) return made.done;
      if (!wait_to_read(made.wait_for)) return -1;
    }
  }

  bool has_begun_head() const { return head_until_ && limits_.in_head(); }
  bool is_head_late() const { return has_begun_head() && patience_.now() >= *head_until_; }

  bool wait_to_read(short events) const {
    const auto until = patience_.now() + idle_;
    if (has_begun_head() && *head_until_ < until) {
      return patience_.wait(socket_, events, *head_until_, GaveUp::kHeadLate);
    }
    return patience_.wait(socket_, events, until, GaveUp::kNothingCame);
  }
  bool wait_to_write(short events) const {
    return patience_.wait(socket_, events, patience_.now() + idle_, GaveUp::kNothingCame);
  }

  const socket_t socket_;
  SSL* const ssl_;
  const std::chrono::seconds idle_;
  Patience& patience_;
  HeadLimits limits_;
  std::optional<Deadline::TimePoint> head_until_;  // once its first byte came
  std::array<char, 4096> buffer_{};
  size_t at_ = 0;
  size_t end_ = 0;
};

BoundedHttpClient::BoundedHttpClient(const std::string& host, int port, const TlsContext* tls,
                                     std::chrono::seconds idle, Patience& patience)
    : httplib::ClientImpl(host, port), tls_(tls), idle_(idle), patience_(patience) {}

BoundedHttpClient::~BoundedHttpClient() { close_connection(); }

void BoundedHttpClient::begin_request() {
  was_kept_ = socket_.is_open();
  got_byte_ = false;
  verify_result_ = X509_V_OK;
  if (!was_kept_) return;
  char byte = 0;
  const SocketAttempt made =
      socket_.ssl == nullptr
          ? plain_result(recv(socket_.sock, &byte, 1, MSG_PEEK), POLLIN)
          : tls_attempt(socket_.ssl, [&] { return SSL_peek(socket_.ssl, &byte, 1); });
  if (made.wait_for == 0 || has_rest_) close_connection();
}

void BoundedHttpClient::close_connection() {
  has_rest_ = false;
  let_go_in_child();
  shutdown_ssl(socket_, true);
  shutdown_socket(socket_);
  close_socket(socket_);
}

bool BoundedHttpClient::create_and_connect_socket(Socket& socket, httplib::Error& error) {
  was_kept_ = false;
  connected_ = ProcessToken::current();
  socket.sock = connect_to(host_, port_, patience_, error);
  if (!socket.is_open()) return false;
  if (tls_ != nullptr && !shake_hands(socket)) {
    close_socket(socket);
    error = verify_result_ == X509_V_OK ? httplib::Error::SSLConnection
                                        : httplib::Error::SSLServerVerification;
    return false;
  }
  error = httplib::Error::Success;
  return true;
}

bool BoundedHttpClient::shake_hands(Socket& socket) {
  const auto until = patience_.now() + kConnectTimeout;
  try {
    socket.ssl = tls_->connect(socket.sock, host_, patience_, until, verify_result_).release();
  } catch (...) {
    // Left open, it would look like a connection that was kept, and take the next request in plain.
    close_socket(socket);
    throw;
  }
  return socket.ssl != nullptr;
}

void BoundedHttpClient::shutdown_ssl(Socket& socket, bool shutdown_gracefully) {
  if (socket.ssl == nullptr) return;
  clear_tls_errors();
  if (shutdown_gracefully) SSL_shutdown(socket.ssl);
  SSL_free(std::exchange(socket.ssl, nullptr));
}

bool BoundedHttpClient::process_socket(const Socket& socket,
                                       std::function<bool(httplib::Stream&)> callback) {
  Stream stream(socket, idle_, patience_);
  const bool done = callback(stream);
  got_byte_ = stream.got_byte();
  has_rest_ = stream.has_rest();
  let_go_in_child();
  return done;
}

// What waits for the server may fork. The library then ends the connection in the child: a TLS
// alert of its own, under the parent's keys and in the place of the parent's next record, and a
// shutdown of the socket that both have.
void BoundedHttpClient::let_go_in_child() {
  if (!socket_.is_open() || connected_.is_current()) return;
  SSL_free(std::exchange(socket_.ssl, nullptr));  // sends nothing
  close_socket(socket_);
}

bool HeadLimits::accept(const char* bytes, size_t size) {
  // After the head, lines are the lengths of chunks alone. The library reads lines byte by byte,
  // and what is not a line in larger pieces.
  if (!in_head_) {
    if (size > 1 || *bytes == '\n') {
      line_bytes_ = 0;
      return true;
    }
    return ++line_bytes_ <= kHeaderLineBytesMax;
  }
  return std::all_of(bytes, bytes + size, [this](char byte) { return accept(byte); });
}

bool HeadLimits::accept(char byte) {
  if (!in_head_) return true;
  ++line_bytes_;
  const bool is_status = status_lines_ > 0;
  if (++head_bytes_ > kHeadBytesMax) return false;
  if (line_bytes_ > (is_status ? kStatusLineBytesMax : kHeaderLineBytesMax)) return false;
  if (line_bytes_ <= kContinueBytes) line_start_ += byte;
  if (byte != '\n') return true;
  if (is_status) {
    --status_lines_;
    // An empty line and another status line follow.
    if (line_start_.size() == kContinueBytes && is_continue(line_start_)) status_lines_ += 2;
  } else if (line_start_ == "\r\n") {
    in_head_ = false;
  } else if (++line_count_ > kHeaderLinesMax) {
    return false;
  }
  line_bytes_ = 0;
  line_start_.clear();
  return true;
}

}  // namespace blindfuse
