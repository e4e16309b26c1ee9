// An HTTP client that gives up if the head of an answer is too long or takes too long, and on
// request. cpp-httplib accepts any head: it matches a status line with std::regex, which overflows
// the stack, and keeps all header lines. Its own limits hold for each silence, and not for their
// sum.
#pragma once

#include <httplib.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "client/patience.h"
#include "client/tls_context.h"
#include "src/system/process_token.h"

namespace blindfuse {

inline constexpr size_t kStatusLineBytesMax = 512;
inline constexpr size_t kHeaderLineBytesMax = 8192;
inline constexpr size_t kHeaderLinesMax = 64;  // later versions of the library take 100
inline constexpr size_t kHeadBytesMax = 65'536;

// The limit for connecting to one address, and for its TLS handshake.
inline constexpr std::chrono::seconds kConnectTimeout{20};
// The limit from the first byte of a head to its last. A head comes in a packet or two, and 65,536
// bytes of it in two seconds at kBytesPerSecondMin. The rest is for networks that stall, such as
// anonymity networks. The time until the first byte is limited only by the call: a server sends the
// head of an answer after its engine has computed all of it.
inline constexpr std::chrono::seconds kHeadTimeout{20};

// Counts the bytes of one answer as they are read.
class HeadLimits {
 public:
  // False if the bytes, the next of the answer, make a line or the head too long.
  bool accept(const char* bytes, size_t size);

  bool in_head() const { return in_head_; }

 private:
  bool accept(char byte);

  bool in_head_ = true;
  int status_lines_ = 1;  // still to come
  size_t line_bytes_ = 0;
  size_t line_count_ = 0;  // of the header
  size_t head_bytes_ = 0;
  std::string line_start_;
};

// A client of one server. One thread at a time. A forked child leaves the connection to its parent:
// it sends nothing over it, and closing its copy does not end the connection.
class BoundedHttpClient : public httplib::ClientImpl {
 public:
  // Plain HTTP if `tls` is null. `tls` and `patience` outlive this. A wait for any byte ends after
  // `idle`.
  BoundedHttpClient(const std::string& host, int port, const TlsContext* tls,
                    std::chrono::seconds idle, Patience& patience);
  ~BoundedHttpClient() override;

  // Called before each request. Closes a kept connection that cannot carry a request, because the
  // server closed it or sent bytes without a request.
  void begin_request();
  void close_connection();

  // Whether the last request used a kept connection and no byte of an answer came. The server has
  // probably closed the connection before it read the request.
  bool lost_kept_connection() const { return was_kept_ && !got_byte_; }
  // The error of the server's certificate, or X509_V_OK.
  long verify_result() const { return verify_result_; }

 private:
  class Stream;

  bool create_and_connect_socket(Socket& socket, httplib::Error& error) override;
  void shutdown_ssl(Socket& socket, bool shutdown_gracefully) override;
  bool process_socket(const Socket& socket,
                      std::function<bool(httplib::Stream&)> callback) override;
  bool shake_hands(Socket& socket);
  void let_go_in_child();

  const TlsContext* const tls_;
  const std::chrono::seconds idle_;
  Patience& patience_;
  ProcessToken connected_ = ProcessToken::current();  // the process that the connection belongs to
  bool was_kept_ = false;
  bool got_byte_ = false;  // of the answer
  bool has_rest_ = false;  // bytes after the last answer, taken from the connection
  long verify_result_ = X509_V_OK;
};

}  // namespace blindfuse
