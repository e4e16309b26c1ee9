#include "client/bounded_http.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string_view>

namespace blindfuse {
namespace {

constexpr size_t kContinueBytes = 12;  // of "HTTP/1.1 100"

bool is_continue(std::string_view line_start) {
  return line_start.starts_with("HTTP/1.") && line_start.ends_with(" 100");
}

class BoundedStream : public httplib::Stream {
 public:
  BoundedStream(socket_t socket, SSL* ssl, SocketTimeouts timeouts, bool& too_long)
      : socket_(socket), ssl_(ssl), timeouts_(timeouts), too_long_(too_long) {
    // What is not data, such as TLS session tickets, is none of the caller's business.
    if (ssl_ != nullptr) SSL_set_mode(ssl_, SSL_MODE_AUTO_RETRY);
  }

  bool is_readable() const override {
    return at_ < end_ || (ssl_ != nullptr && SSL_pending(ssl_) > 0) ||
           wait(POLLIN, timeouts_.read_ms);
  }
  bool is_writable() const override { return wait(POLLOUT, timeouts_.write_ms); }

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
      too_long_ = true;
      return -1;
    }
    return got;
  }

  ssize_t write(const char* bytes, size_t size) override {
    if (!is_writable()) return -1;
    if (ssl_ != nullptr) {
      return SSL_write(ssl_, bytes, static_cast<int>(std::min<size_t>(size, INT_MAX)));
    }
    for (;;) {
      const ssize_t sent = send(socket_, bytes, size, MSG_NOSIGNAL);
      if (sent >= 0 || errno != EINTR) return sent;
    }
  }

  // The library asks for these on a server alone.
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}

  socket_t socket() const override { return socket_; }

 private:
  bool wait(short events, int timeout_ms) const {
    pollfd polled = {socket_, events, 0};
    for (;;) {
      const int ready = poll(&polled, 1, timeout_ms);
      if (ready >= 0 || errno != EINTR) return ready > 0;
    }
  }

  ssize_t receive(char* bytes, size_t size) {
    if (!is_readable()) return -1;
    if (ssl_ != nullptr) {
      return SSL_read(ssl_, bytes, static_cast<int>(std::min<size_t>(size, INT_MAX)));
    }
    for (;;) {
      const ssize_t got = recv(socket_, bytes, size, 0);
      if (got >= 0 || errno != EINTR) return got;
    }
  }

  const socket_t socket_;
  SSL* const ssl_;
  const SocketTimeouts timeouts_;
  bool& too_long_;
  HeadLimits limits_;
  std::array<char, 4096> buffer_{};
  size_t at_ = 0;
  size_t end_ = 0;
};

}  // namespace

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
  }
  line_bytes_ = 0;
  line_start_.clear();
  return true;
}

bool process_bounded(socket_t socket, SSL* ssl, SocketTimeouts timeouts, bool& too_long,
                     const std::function<bool(httplib::Stream&)>& process) {
  BoundedStream stream(socket, ssl, timeouts, too_long);
  return process(stream);
}

}  // namespace blindfuse
