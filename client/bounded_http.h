// HTTP clients that give up on a server whose answer has too long a head, and when they are told to
// while they wait. cpp-httplib takes any head: it matches a status line with std::regex, which
// overflows the stack, and keeps all header lines.
#pragma once

#include <httplib.h>

#include <cstddef>
#include <functional>
#include <string>

#include "client/patience.h"

namespace blindfuse {

inline constexpr size_t kStatusLineBytesMax = 512;
inline constexpr size_t kHeaderLineBytesMax = 8192;
inline constexpr size_t kHeadBytesMax = 65'536;

// Counts the bytes of one answer as they are read.
class HeadLimits {
 public:
  // False when the bytes, the next of the answer, make a line or the head too long.
  bool accept(const char* bytes, size_t size);

 private:
  bool accept(char byte);

  bool in_head_ = true;
  int status_lines_ = 1;  // still to come
  size_t line_bytes_ = 0;
  size_t head_bytes_ = 0;
  std::string line_start_;
};

struct SocketTimeouts {
  int read_ms;  // of any one of them
  int write_ms;
};

// The connection as the library reads and writes it, plain when `ssl` is null.
bool process_bounded(socket_t socket, SSL* ssl, SocketTimeouts timeouts, Patience& patience,
                     const std::function<bool(httplib::Stream&)>& process);

// httplib::ClientImpl or httplib::SSLClient, bounded.
template <class Base>
class BoundedHttpClient : public Base {
 public:
  BoundedHttpClient(const std::string& host, int port, Patience& patience)
      : Base(host, port), patience_(patience) {}

 private:
  bool process_socket(const httplib::ClientImpl::Socket& socket,
                      std::function<bool(httplib::Stream&)> callback) override {
    const SocketTimeouts timeouts = {static_cast<int>(this->read_timeout_sec_ * 1000),
                                     static_cast<int>(this->write_timeout_sec_ * 1000)};
    return process_bounded(socket.sock, socket.ssl, timeouts, patience_, callback);
  }

  Patience& patience_;
};

}  // namespace blindfuse
