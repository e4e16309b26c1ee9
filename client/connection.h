// A TCP connection to a server, with or without TLS, which requests share.
#pragma once

#include <chrono>
#include <string_view>

#include "client/patience.h"
#include "client/tls_context.h"
#include "src/system/file.h"
#include "src/system/process_token.h"

namespace blindfuse {

// One thread at a time. A forked child leaves the connection to its parent: it sends nothing over
// it, and closing its copy does not end the connection.
class Connection {
 public:
  // `patience` outlives this. A wait for any byte ends after `idle`.
  Connection(std::chrono::seconds idle, Patience& patience) : idle_(idle), patience_(patience) {}
  ~Connection() { close(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Takes a connected socket, which does not block.
  void open(FileDescriptor socket);
  // Makes a TLS handshake with `host`. Returns false if that failed, was given up, or took too
  // long. verify_result is then the error of the server's certificate, or X509_V_OK.
  bool secure(const TlsContext& tls, const std::string& host, long& verify_result);
  bool is_open() const { return socket_.is_open(); }
  void close();

  // Called before each request. Closes a kept connection that cannot carry a request, because the
  // server closed it or sent bytes without a request.
  void begin_request();
  // Whether the last request used a kept connection and no byte of an answer came. The server has
  // probably closed the connection before it read the request.
  bool was_lost() const { return was_kept_ && !got_byte_; }

  // Returns the number of bytes, 0 at the end, and -1 if the connection broke or `patience` gave
  // up.
  ssize_t read(char* bytes, size_t size);
  // False if not all was sent.
  bool write(std::string_view bytes);

 private:
  template <class Attempt>
  ssize_t complete(Attempt attempt);

  const std::chrono::seconds idle_;
  Patience& patience_;
  FileDescriptor socket_;
  SslPointer ssl_;                                 // null without TLS
  ProcessToken opened_ = ProcessToken::current();  // the process that the connection belongs to
  bool was_kept_ = false;
  bool got_byte_ = false;  // of the answer
};

}  // namespace blindfuse
