#include "client/bounded_http.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <string_view>

namespace blindfuse {
namespace {

using std::chrono::steady_clock;

constexpr size_t kContinueBytes = 12;  // of "HTTP/1.1 100"

bool is_continue(std::string_view line_start) {
  return line_start.starts_with("HTTP/1.") && line_start.ends_with(" 100");
}

class BoundedStream : public httplib::Stream {
 public:
  BoundedStream(socket_t socket, SSL* ssl, SocketTimeouts timeouts, Patience& patience)
      : socket_(socket), ssl_(ssl), timeouts_(timeouts), patience_(patience) {
    // A write takes what there is room for, and a read what is there: nothing waits but wait(),
    // which can be told to stop.
    fcntl(socket_, F_SETFL, flags_ | O_NONBLOCK);
    if (ssl_ != nullptr) {
      SSL_set_mode(ssl_, SSL_MODE_AUTO_RETRY | SSL_MODE_ENABLE_PARTIAL_WRITE |
                             SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    }
  }
  // The library goes on with the socket as it was.
  ~BoundedStream() override { fcntl(socket_, F_SETFL, flags_); }
  BoundedStream(const BoundedStream&) = delete;
  BoundedStream& operator=(const BoundedStream&) = delete;

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
      patience_.head_too_long = true;
      return -1;
    }
    return got;
  }

  ssize_t write(const char* bytes, size_t size) override {
    const auto attempt = [&] {
      if (ssl_ == nullptr) return plain(send(socket_, bytes, size, MSG_NOSIGNAL), POLLOUT);
      return secure(SSL_write(ssl_, bytes, static_cast<int>(std::min<size_t>(size, INT_MAX))));
    };
    return transfer(attempt, timeouts_.write_ms);
  }

  // The library asks for these on a server alone.
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}

  socket_t socket() const override { return socket_; }

 private:
  // What one attempt to read or write came to: `done` bytes, or what to wait for.
  struct Attempt {
    ssize_t done;  // 0: the end; -1: it failed
    short wait_for = 0;
  };

  static Attempt plain(ssize_t done, short events) {
    if (done >= 0) return {done};
    if (errno == EINTR) return {-1, events};
    return {-1, errno == EAGAIN || errno == EWOULDBLOCK ? events : short{0}};
  }
  Attempt secure(int done) const {
    if (done > 0) return {done};
    switch (SSL_get_error(ssl_, done)) {
      case SSL_ERROR_WANT_READ:
        return {-1, POLLIN};
      case SSL_ERROR_WANT_WRITE:
        return {-1, POLLOUT};
      case SSL_ERROR_ZERO_RETURN:
        return {0};
      default:
        return {-1};
    }
  }

  template <class Try>
  ssize_t transfer(Try attempt, int timeout_ms) {
    for (;;) {
      if (!may_go_on()) return -1;
      const Attempt made = attempt();
      if (made.wait_for == 0) return made.done;
      if (!wait(made.wait_for, timeout_ms)) return -1;
    }
  }

  ssize_t receive(char* bytes, size_t size) {
    const auto attempt = [&] {
      if (ssl_ == nullptr) return plain(recv(socket_, bytes, size, 0), POLLIN);
      return secure(SSL_read(ssl_, bytes, static_cast<int>(std::min<size_t>(size, INT_MAX))));
    };
    return transfer(attempt, timeouts_.read_ms);
  }

  // Asks now and then, whether or not anything comes.
  bool may_go_on() const {
    const auto now = steady_clock::now();
    if (now - asked_ < std::chrono::milliseconds(kWaitSliceMs)) return true;
    asked_ = now;
    if (!patience_.keep_waiting || patience_.keep_waiting()) return true;
    patience_.told_to_stop = true;
    return false;
  }

  bool wait(short events, int timeout_ms) const {
    const auto give_up = steady_clock::now() + std::chrono::milliseconds(timeout_ms);
    pollfd polled = {socket_, events, 0};
    for (;;) {
      const int ready = poll(&polled, 1, std::min(timeout_ms, kWaitSliceMs));
      if (ready > 0) return true;
      if (ready < 0 && errno != EINTR) return false;
      if (!may_go_on()) return false;
      if (steady_clock::now() >= give_up) {
        patience_.timed_out = true;
        return false;
      }
    }
  }

  const socket_t socket_;
  SSL* const ssl_;
  const SocketTimeouts timeouts_;
  Patience& patience_;
  const int flags_ = fcntl(socket_, F_GETFL);
  mutable steady_clock::time_point asked_ = steady_clock::now();
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

bool process_bounded(socket_t socket, SSL* ssl, SocketTimeouts timeouts, Patience& patience,
                     const std::function<bool(httplib::Stream&)>& process) {
  BoundedStream stream(socket, ssl, timeouts, patience);
  return process(stream);
}

}  // namespace blindfuse
